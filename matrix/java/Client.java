import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The matrix's command language (matrix/README.md) spoken by Apache Kafka's Java client. */
public final class Client {
    private final Map<String, String> flags = new HashMap<>();
    private volatile boolean stopping = false;

    public static void main(String[] args) throws Exception {
        Client client = new Client();
        for (int i = 1; i + 1 < args.length; i += 2) {
            client.flags.put(args[i], args[i + 1]);
        }
        switch (args[0]) {
            case "version": client.version(); break;
            case "create-topic": client.createTopic(); break;
            case "produce": client.produce(); break;
            case "consume": client.consume(); break;
            default: throw new IllegalArgumentException(args[0]);
        }
    }

    private void version() throws IOException {
        Properties build = new Properties();
        build.load(KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties"));
        print(build.getProperty("version"));
    }

    private void createTopic() throws Exception {
        try (Admin admin = Admin.create(config())) {
            int partitions = Integer.parseInt(flags.get("--partitions"));
            NewTopic topic = new NewTopic(flags.get("--topic"), partitions, (short) 1);
            admin.createTopics(Collections.singleton(topic)).all().get();
        }
    }

    private void produce() throws ExecutionException, InterruptedException {
        Properties config = config();
        config.put("compression.type", flags.get("--codec"));
        config.put("enable.idempotence", flags.get("--idempotent"));
        config.put("acks", "all");
        config.put("linger.ms", "5");
        long first = Long.parseLong(flags.get("--first"));
        long records = Long.parseLong(flags.get("--records"));
        long keys = Long.parseLong(flags.get("--keys"));
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, text, text)) {
            Future<RecordMetadata> last = null;
            Failure failure = new Failure();
            for (long i = first; i < first + records; i++) {
                String key = "k" + i % keys;
                String value = key + ":" + i / keys;
                last = producer.send(
                    new ProducerRecord<>(flags.get("--topic"), key, value),
                    (metadata, error) -> failure.note(error));
            }
            producer.flush();
            last.get();
            failure.check();
        }
        print("produced " + records);
    }

    private void consume() {
        Properties config = config();
        config.put("group.id", flags.get("--group"));
        if (flags.containsKey("--protocol")) {
            // The broker sets the times of this protocol.
            config.put("group.protocol", flags.get("--protocol"));
        } else {
            config.put("session.timeout.ms", flags.get("--session-timeout-ms"));
            config.put("heartbeat.interval.ms", "500");
        }
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        if (flags.containsKey("--instance-id")) {
            config.put("group.instance.id", flags.get("--instance-id"));
        }
        if (flags.containsKey("--assignor")) {
            config.put("partition.assignment.strategy", assignor(flags.get("--assignor")));
        }
        stopWhenInputEnds();
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, text, text)) {
            Progress progress = new Progress(consumer);
            subscribe(consumer, progress);
            while (!stopping) {
                progress.take(consumer.poll(Duration.ofMillis(100)));
            }
        }
        print("closed");
    }

    private void subscribe(KafkaConsumer<String, String> consumer, Progress progress) {
        String pattern = flags.get("--pattern");
        if (pattern == null) {
            consumer.subscribe(Collections.singleton(flags.get("--topic")), progress);
            return;
        }
        try {
            // By reflection, since this file compiles against clients without the class as well.
            Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            KafkaConsumer.class.getMethod("subscribe", type, ConsumerRebalanceListener.class)
                .invoke(consumer, type.getConstructor(String.class).newInstance(pattern), progress);
        } catch (ReflectiveOperationException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private static String assignor(String name) {
        String prefix = "org.apache.kafka.clients.consumer.";
        switch (name) {
            case "range": return prefix + "RangeAssignor";
            case "roundrobin": return prefix + "RoundRobinAssignor";
            case "sticky": return prefix + "StickyAssignor";
            case "cooperative-sticky": return prefix + "CooperativeStickyAssignor";
            default: throw new IllegalArgumentException(name);
        }
    }

    /** The orchestrator asks for a clean leave by closing our input, and dies with us alike. */
    private void stopWhenInputEnds() {
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException end) {
                // A broken input ends the program as a closed one does.
            }
            stopping = true;
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    private Properties config() {
        Properties config = new Properties();
        config.put("bootstrap.servers", flags.get("--bootstrap"));
        return config;
    }

    private static void print(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /**
     * What was read and is not yet committed. A cooperative consumer reads on while its group
     * rebalances, so a commit may fail and must then be made before the partition goes.
     */
    private static final class Progress implements ConsumerRebalanceListener {
        private final KafkaConsumer<String, String> consumer;
        private final Map<TopicPartition, OffsetAndMetadata> uncommitted = new HashMap<>();

        Progress(KafkaConsumer<String, String> consumer) {
            this.consumer = consumer;
        }

        void take(ConsumerRecords<String, String> records) {
            StringBuilder lines = new StringBuilder();
            for (ConsumerRecord<String, String> record : records) {
                lines.append("record ").append(record.partition())
                    .append(' ').append(record.offset())
                    .append(' ').append(record.key())
                    .append(' ').append(record.value()).append('\n');
                uncommitted.put(
                    new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
            }
            System.out.print(lines);
            System.out.flush();
            commit();
        }

        private void commit() {
            if (uncommitted.isEmpty()) {
                return;
            }
            try {
                consumer.commitSync(uncommitted);
            } catch (RebalanceInProgressException | CommitFailedException later) {
                // The second where the group went on without us: what we had is lost.
                print("error commit: " + later.getMessage());
                return;
            }
            print("committed " + uncommitted.entrySet().stream()
                .map(entry -> entry.getKey().partition() + ":" + entry.getValue().offset())
                .collect(Collectors.joining(",")));
            uncommitted.clear();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            print("assigned " + list(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit();
            onPartitionsLost(partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            uncommitted.keySet().removeAll(partitions);
            print("revoked " + list(partitions));
        }

        private static String list(Collection<TopicPartition> partitions) {
            return partitions.stream().map(p -> String.valueOf(p.partition()))
                .collect(Collectors.joining(","));
        }
    }

    /** The first error any send reported. */
    private static final class Failure {
        private Exception first = null;

        synchronized void note(Exception error) {
            if (first == null) {
                first = error;
            }
        }

        synchronized void check() throws ExecutionException {
            if (first != null) {
                throw new ExecutionException(first);
            }
        }
    }
}
