import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Times the rebalances of a group of members in this JVM: the scenes and the words of
 * matrix/python/rebalance.py.
 */
public final class Rebalance {
    private static final String TOPIC = "rebalanced";
    private static final long PATIENCE_NS = 60_000_000_000L;

    private final String bootstrap;
    private final String protocol;
    private final long pauseMs;

    private Rebalance(String[] args) {
        bootstrap = args[0];
        protocol = args[1];
        pauseMs = (long) (Double.parseDouble(args[4]) * 1000);
    }

    public static void main(String[] args) throws Exception {
        new Rebalance(args).run(Integer.parseInt(args[2]), Integer.parseInt(args[3]));
        // Members that have not left yet are of no interest.
        System.exit(0);
    }

    private void run(int count, int partitions) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(TOPIC, partitions, (short) 1))).all().get();
            List<Member> members = new ArrayList<>();
            IntStream.range(0, count).forEach(n -> members.add(new Member()));
            timed("all start, ms", members, partitions, () -> members.forEach(Thread::start));
            stand();
            Member joiner = new Member();
            List<Member> more = new ArrayList<>(members);
            more.add(joiner);
            timed("one joins, ms", more, partitions, joiner::start);
            stand();
            timed("one leaves, ms", members, partitions, joiner::leave);
            if (protocol.equals("consumer")) {
                stand();
                NewPartitions doubled = NewPartitions.increaseTo(2 * partitions);
                timed("partitions doubled, ms", members, 2 * partitions,
                    () -> admin.createPartitions(Map.of(TOPIC, doubled)));
            }
            members.forEach(Member::leave);
            for (Member member : more) {
                member.join(30_000);
            }
        }
    }

    /** No act meets the members' heartbeats at a moment of its choice. */
    private void stand() throws InterruptedException {
        Thread.sleep((long) (pauseMs * (1 + ThreadLocalRandom.current().nextDouble())));
    }

    private void timed(String name, List<Member> members, int partitions, Runnable act)
        throws InterruptedException {
        long started = System.nanoTime();
        act.run();
        while (System.nanoTime() - started < PATIENCE_NS) {
            long done = settled(members, partitions);
            if (done > started) {
                System.out.println(name + "\t" + (done - started) / 1_000_000);
                return;
            }
            Thread.sleep(1);
        }
        System.err.println(name + ": not settled in time");
        System.exit(1);
    }

    /** When the last of them got its part, once the parts are the whole topic; else the past. */
    private static long settled(List<Member> members, int partitions) {
        Set<Integer> all = new HashSet<>();
        int sum = 0, most = 0, least = Integer.MAX_VALUE;
        long last = Long.MIN_VALUE;
        for (Member member : members) {
            synchronized (member) {
                all.addAll(member.owned);
                sum += member.owned.size();
                most = Math.max(most, member.owned.size());
                least = Math.min(least, member.owned.size());
                last = Math.max(last, member.changedAt);
            }
        }
        boolean isWhole = sum == partitions && all.size() == partitions;
        return isWhole && most - least <= 1 ? last : Long.MIN_VALUE;
    }

    /** A member and what it owns. */
    private final class Member extends Thread implements ConsumerRebalanceListener {
        private final Set<Integer> owned = new HashSet<>();
        private long changedAt = Long.MIN_VALUE;
        private final KafkaConsumer<byte[], byte[]> consumer;

        Member() {
            setDaemon(true);
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            consumer = new KafkaConsumer<>(Map.of(
                "bootstrap.servers", bootstrap,
                "group.id", "timed",
                "group.protocol", protocol,
                "auto.offset.reset", "earliest"), bytes, bytes);
        }

        @Override public void run() {
            consumer.subscribe(List.of(TOPIC), this);
            try {
                while (true) {
                    consumer.poll(Duration.ofMillis(50));
                }
            } catch (WakeupException leaving) {
                consumer.close();
            }
        }

        void leave() {
            consumer.wakeup();
        }

        @Override public synchronized void onPartitionsAssigned(Collection<TopicPartition> came) {
            owned.addAll(numbers(came));
            changedAt = System.nanoTime();
        }

        @Override public synchronized void onPartitionsRevoked(Collection<TopicPartition> went) {
            owned.removeAll(numbers(went));
            changedAt = System.nanoTime();
        }

        private static Set<Integer> numbers(Collection<TopicPartition> partitions) {
            return partitions.stream().map(TopicPartition::partition).collect(Collectors.toSet());
        }
    }
}
