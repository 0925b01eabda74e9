import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Reading and producing as fast as the Java client goes: a speed program (matrix/README.md). */
public final class Speed {
    public static void main(String[] args) throws Exception {
        if (args.length != 7) {
            throw new IllegalArgumentException("read|write BROKERS TOPIC PARTITIONS WARM RECORDS BYTES");
        }
        for (int phase = 0; phase < 2; phase++) {
            long count = Long.parseLong(args[4 + phase]);
            long began = System.nanoTime();
            if (args[0].equals("read")) {
                read(args[1], args[2], Integer.parseInt(args[3]), count);
            } else {
                write(args[1], args[2], count, Integer.parseInt(args[6]));
            }
            double seconds = (System.nanoTime() - began) / 1e9;
            System.out.println((phase == 0 ? "warm " : "done ") + count + " " + seconds);
            System.out.flush();
            while (System.in.read() > '\n') { }
        }
    }

    /** Reads so many records, every partition's in order and without a gap. */
    private static void read(String brokers, String topic, int partitions, long count) {
        Properties config = new Properties();
        config.put("bootstrap.servers", brokers);
        config.put("group.id", "speed");
        config.put("group.protocol", System.getProperty("protocol", "consumer"));
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        config.put("key.deserializer", ByteArrayDeserializer.class);
        config.put("value.deserializer", ByteArrayDeserializer.class);
        List<TopicPartition> all =
            IntStream.range(0, partitions).mapToObj(i -> new TopicPartition(topic, i)).toList();
        long[] next = new long[partitions];
        long done = 0;
        long bytes = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config)) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            while (done < count) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofSeconds(1));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (record.offset() != next[record.partition()]++) {
                        throw new IllegalStateException("out of order");
                    }
                    bytes += record.value().length;
                    done++;
                }
            }
        }
        if (bytes == 0) {
            throw new IllegalStateException("nothing but empty records");
        }
    }

    /** Produces so many records, and waits until each is stored. */
    private static void write(String brokers, String topic, long count, int size) {
        Properties config = new Properties();
        config.put("bootstrap.servers", brokers);
        config.put("linger.ms", "5");
        config.put("batch.size", "16384");
        config.put("key.serializer", ByteArraySerializer.class);
        config.put("value.serializer", ByteArraySerializer.class);
        byte[] value = new byte[size];
        Arrays.fill(value, (byte) 'x');
        AtomicLong stored = new AtomicLong();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
            for (long i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> {
                    if (error == null) {
                        stored.incrementAndGet();
                    }
                });
            }
            producer.flush();
        }
        if (stored.get() != count) {
            throw new IllegalStateException("not all is stored");
        }
    }
}
