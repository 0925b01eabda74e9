import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.SubscribedTopicDescriberImpl;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.TopicIds;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/**
 * Kafka's half of `cargo xtask bench assign`: its server assignors on the cells it is told.
 *
 * It answers lines on standard input, as our half (crates/group/benches/assign.rs) does; what a
 * cell is made of comes with the line, so the two cannot differ. What Kafka's own benches prepare
 * beforehand is prepared beforehand here: the spec and the image for `run`, members and the target
 * they had for `build`, which is what its coordinator calls.
 */
public class AssignorBench {
    private static final int RACKS = 3;
    /** Counts this thread alone: not the compiler's, nor the collector's, nor what else runs. */
    private static final ThreadMXBean THREAD = ManagementFactory.getThreadMXBean();
    /** Keeps the compiler from dropping what nobody reads. */
    private static volatile Object sink;

    public static void main(String[] args) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Cell cell = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "cell" -> cell = new Cell(words);
                case "run" -> System.out.println(medianNanos(cell::assign, Long.parseLong(words[1])));
                case "build" -> System.out.println(medianNanos(cell::build, Long.parseLong(words[1])));
                case "moves" -> System.out.println(cell.moves());
                case "fixture" -> System.out.println(cell.fixture());
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    /** Median of as many runs as fit, at least one. */
    private static long medianNanos(Supplier<Object> work, long millis) {
        List<Long> times = new ArrayList<>();
        long begin = System.nanoTime();
        while (times.isEmpty() || System.nanoTime() - begin < millis * 1_000_000) {
            long start = THREAD.getCurrentThreadCpuTime();
            sink = work.get();
            times.add(THREAD.getCurrentThreadCpuTime() - start);
        }
        times.sort(null);
        return times.get(times.size() / 2);
    }

    private static final class Cell {
        final ConsumerGroupPartitionAssignor assignor;
        final String subscription;
        final boolean hasRacks;
        final int buckets;
        final int after;
        final int[] counts;
        final List<Set<String>> subscriptions = new ArrayList<>();
        final Map<String, Assignment> previous = new HashMap<>();
        final Group group;

        /** cell ASSIGNOR SUBSCRIPTION RACKS BEFORE AFTER BUCKETS GROWN COUNTS */
        Cell(String[] words) {
            assignor = words[1].equals("range") ? new RangeAssignor() : new UniformAssignor();
            subscription = words[2];
            hasRacks = words[3].equals("racks");
            after = Integer.parseInt(words[5]);
            buckets = Integer.parseInt(words[6]);
            counts = Arrays.stream(words[8].split(",")).flatMapToInt(run -> {
                String[] parts = run.split("x");
                return Arrays.stream(new int[Integer.parseInt(parts[0])]).map(zero -> Integer.parseInt(parts[1]));
            }).toArray();
            for (int bucket = 0; bucket < buckets; bucket++) {
                subscriptions.add(topicsOf(bucket));
            }
            if (!words[4].equals("none")) {
                Group old = new Group(Integer.parseInt(words[4]), 0);
                assignor.assign(old.spec, old.describer).members().forEach((id, assignment) ->
                    previous.put(id, new Assignment(copy(assignment))));
            }
            group = new Group(after, Integer.parseInt(words[7]));
        }

        Set<String> topicsOf(int bucket) {
            int from = subscription.equals("disjoint") ? counts.length * bucket / buckets : 0;
            int to = subscription.equals("all") ? counts.length : counts.length * (bucket + 1) / buckets;
            Set<String> names = new HashSet<>();
            for (int topic = from; topic < to; topic++) {
                names.add("topic-" + topic);
            }
            return names;
        }

        Object assign() {
            group.resolver.clear();
            return assignor.assign(group.spec, group.describer);
        }

        Object build() {
            return new TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder("group", 2, assignor)
                .withTime(Time.SYSTEM)
                .withMembers(group.members)
                .withTargetAssignment(previous)
                .withInvertedTargetAssignment(group.owners)
                .withSubscriptionType(type())
                .withResolvedRegularExpressions(Map.of())
                .withMetadataImage(group.image)
                .build();
        }

        SubscriptionType type() {
            return subscription.equals("all") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        }

        /** Partitions that go from a member that stays to another. */
        int moves() {
            int moves = 0;
            for (Map.Entry<String, MemberAssignment> member : assigned().members().entrySet()) {
                for (Map.Entry<Uuid, Set<Integer>> topic : member.getValue().partitions().entrySet()) {
                    Map<Integer, String> owners = group.owners.getOrDefault(topic.getKey(), Map.of());
                    for (int partition : topic.getValue()) {
                        String owner = owners.get(partition);
                        moves += owner != null && !owner.equals(member.getKey()) ? 1 : 0;
                    }
                }
            }
            return moves;
        }

        GroupAssignment assigned() {
            return (GroupAssignment) assign();
        }

        /** The owners before, by topic: member numbers, `-` where a partition was not there. */
        String fixture() {
            StringBuilder text = new StringBuilder();
            for (int topic = 0; topic < counts.length; topic++) {
                Map<Integer, String> owners = new TreeMap<>();
                Uuid id = group.ids.get(topic);
                previous.forEach((member, assignment) -> assignment.partitions().getOrDefault(id, Set.of())
                    .forEach(partition -> owners.put(partition, member.substring("member".length()))));
                text.append(topic == 0 ? "" : ";").append(String.join(",", owners.values()));
            }
            return text.toString();
        }

        /** As the coordinator has it from its records: a HashMap with a HashSet per topic. */
        static Map<Uuid, Set<Integer>> copy(MemberAssignment assignment) {
            Map<Uuid, Set<Integer>> partitions = new HashMap<>();
            assignment.partitions().forEach((topic, some) -> partitions.put(topic, new HashSet<>(some)));
            return partitions;
        }

        /** What the assignor and the target's builder are given. */
        final class Group {
            final List<Uuid> ids = new ArrayList<>();
            final CoordinatorMetadataImage image;
            final TopicIds.TopicResolver resolver;
            final SubscribedTopicDescriberImpl describer;
            final Map<String, ConsumerGroupMember> members = new HashMap<>();
            final Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
            final GroupSpecImpl spec;

            Group(int memberCount, int grown) {
                image = image(grown);
                resolver = new TopicIds.CachedTopicResolver(image);
                describer = new SubscribedTopicDescriberImpl(image);
                Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
                List<List<String>> names = subscriptions.stream().<List<String>>map(ArrayList::new).toList();
                for (int i = 0; i < memberCount; i++) {
                    String id = "member" + i;
                    String rack = hasRacks ? "rack" + i % RACKS : null;
                    Assignment held = previous.getOrDefault(id, Assignment.EMPTY);
                    held.partitions().forEach((topic, partitions) -> partitions.forEach(partition ->
                        owners.computeIfAbsent(topic, t -> new HashMap<>()).put(partition, id)));
                    specs.put(id, new MemberSubscriptionAndAssignmentImpl(
                        Optional.ofNullable(rack), Optional.empty(),
                        new TopicIds(subscriptions.get(i % buckets), resolver), held));
                    members.put(id, new ConsumerGroupMember.Builder(id)
                        .setRackId(rack).setSubscribedTopicNames(names.get(i % buckets)).build());
                }
                spec = new GroupSpecImpl(specs, type(), owners);
            }

            CoordinatorMetadataImage image(int grown) {
                int[] now = counts.clone();
                for (int i = 0; i < grown; i++) {
                    now[(int) ((long) i * now.length / grown)]++;
                }
                MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
                for (int broker = 0; broker < RACKS; broker++) {
                    delta.replay(new RegisterBrokerRecord().setBrokerId(broker).setRack("rack" + broker));
                }
                Random random = new Random(42);
                for (int topic = 0; topic < now.length; topic++) {
                    Uuid id = new Uuid(random.nextLong(), random.nextLong());
                    ids.add(id);
                    delta.replay(new TopicRecord().setTopicId(id).setName("topic-" + topic));
                    for (int partition = 0; partition < now[topic]; partition++) {
                        delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition)
                            .setReplicas(List.of(partition % RACKS, (partition + 1) % RACKS)));
                    }
                }
                return new KRaftCoordinatorMetadataImage(delta.apply(MetadataProvenance.EMPTY));
            }
        }
    }
}
