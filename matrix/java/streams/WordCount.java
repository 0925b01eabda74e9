import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words: a repartition by word, a state store with its changelog, at least once. Prints how
 * many active tasks it has whenever that changes; closing its input stops it.
 */
public final class WordCount {
    public static void main(String[] args) throws Exception {
        Map<String, String> flags = new HashMap<>();
        for (int i = 0; i + 1 < args.length; i += 2) {
            flags.put(args[i], args[i + 1]);
        }
        KafkaStreams streams = new KafkaStreams(topology(flags).build(), config(flags));
        streams.start();
        Thread watcher = new Thread(() -> watch(streams));
        watcher.setDaemon(true);
        watcher.start();
        while (System.in.read() >= 0) { }
        boolean closed = streams.close(Duration.ofSeconds(30));
        print(closed ? "closed" : "not closed in time");
    }

    private static StreamsBuilder topology(Map<String, String> flags) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(flags.get("--from"))
            .flatMapValues(value -> Collections.singletonList(value.split(":")[0]))
            .groupBy((key, word) -> word)
            .count(Materialized.as("counts"))
            .toStream()
            .to(flags.get("--to"), Produced.with(Serdes.String(), Serdes.Long()));
        return builder;
    }

    private static Properties config(Map<String, String> flags) {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, flags.get("--application"));
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, flags.get("--bootstrap"));
        config.put(StreamsConfig.STATE_DIR_CONFIG, flags.get("--state"));
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        config.put("session.timeout.ms", 6000);
        config.put("heartbeat.interval.ms", 500);
        config.put("auto.offset.reset", "earliest");
        return config;
    }

    private static void watch(KafkaStreams streams) {
        String last = "";
        while (true) {
            long tasks = streams.metadataForLocalThreads().stream()
                .mapToLong(thread -> thread.activeTasks().size()).sum();
            String line = streams.state() + " " + tasks;
            if (!line.equals(last)) {
                print(line);
                last = line;
            }
            try {
                Thread.sleep(100);
            } catch (InterruptedException end) {
                return;
            }
        }
    }

    private static void print(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
