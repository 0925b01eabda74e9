import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A source that counts: task I sends the key I and 0, 1, 2, ..., and goes on where it committed. */
public final class Numbers extends SourceConnector {
    private Map<String, String> config;

    @Override
    public void start(Map<String, String> config) {
        this.config = config;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        List<Map<String, String>> tasks = new ArrayList<>();
        for (int task = 0; task < maxTasks; task++) {
            Map<String, String> taskConfig = new HashMap<>(config);
            taskConfig.put("task", String.valueOf(task));
            tasks.add(taskConfig);
        }
        return tasks;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Counter.class;
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define(
            "topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "Where to count");
    }

    @Override
    public void stop() { }

    @Override
    public String version() {
        return "1";
    }

    /** One task's count, a few numbers each 50 ms. */
    public static final class Counter extends SourceTask {
        private String topic;
        private String task;
        private long next;

        @Override
        public void start(Map<String, String> config) {
            topic = config.get("topic");
            task = config.get("task");
            Map<String, Object> offset =
                context.offsetStorageReader().offset(Collections.singletonMap("task", task));
            next = offset == null ? 0 : (Long) offset.get("next");
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(50);
            List<SourceRecord> records = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                long number = next++;
                records.add(new SourceRecord(
                    Collections.singletonMap("task", task),
                    Collections.singletonMap("next", next),
                    topic,
                    Schema.STRING_SCHEMA, task,
                    Schema.STRING_SCHEMA, String.valueOf(number)));
            }
            return records;
        }

        @Override
        public void stop() { }

        @Override
        public String version() {
            return "1";
        }
    }
}
