import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Consumers with group.protocol=consumer; prints one line for each scenario. */
public class ConsumerProtocol {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long LIMIT_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        rebalances(bootstrap, topic, partitions);
        pattern(bootstrap, topic, partitions);
        staticRestart(bootstrap, topic, partitions);
        commits(bootstrap, topic, partitions);
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group, String... more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("group.protocol", "consumer");
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        for (int i = 0; i < more.length; i += 2) properties.put(more[i], more[i + 1]);
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    /** Polls all until their assignments have these sizes, in ascending order. */
    private static String until(List<KafkaConsumer<String, String>> consumers, Integer... sizes) {
        long end = System.currentTimeMillis() + LIMIT_MS;
        List<Integer> found = new ArrayList<>();
        while (System.currentTimeMillis() < end) {
            found.clear();
            Set<TopicPartition> all = new HashSet<>();
            int sum = 0;
            for (KafkaConsumer<String, String> each : consumers) {
                each.poll(POLL);
                found.add(each.assignment().size());
                all.addAll(each.assignment());
                sum += each.assignment().size();
            }
            Collections.sort(found);
            if (sum == all.size() && found.equals(Arrays.asList(sizes))) return "ok";
        }
        return "timed out with " + found;
    }

    private static void rebalances(String bootstrap, String topic, int partitions) {
        String group = "java-rebalances";
        List<KafkaConsumer<String, String>> all = new ArrayList<>();
        for (String assignor : List.of("uniform", "range", "uniform")) {
            KafkaConsumer<String, String> each = consumer(bootstrap, group, "group.remote.assignor", assignor);
            each.subscribe(List.of(topic));
            all.add(each);
            each.poll(POLL);
        }
        int part = partitions / 3;
        System.out.println("three=" + until(all, part, part, part));
        all.remove(1).close();
        System.out.println("two=" + until(all, partitions / 2, partitions / 2));
        all.get(0).unsubscribe();
        System.out.println("one=" + until(all.subList(1, 2), partitions));
        for (KafkaConsumer<String, String> each : all) each.close();
    }

    private static void pattern(String bootstrap, String topic, int partitions) {
        try (KafkaConsumer<String, String> one = consumer(bootstrap, "java-pattern")) {
            one.subscribe(new SubscriptionPattern(topic.substring(0, topic.length() - 1) + "."));
            System.out.println("pattern=" + until(List.of(one), partitions));
            one.subscribe(new SubscriptionPattern("(x"));
            String said = "nothing";
            long end = System.currentTimeMillis() + LIMIT_MS;
            while (said.equals("nothing") && System.currentTimeMillis() < end) {
                try {
                    one.poll(POLL);
                } catch (Exception error) {
                    said = error.getClass().getSimpleName();
                }
            }
            System.out.println("bad pattern=" + said);
        }
    }

    private static void staticRestart(String bootstrap, String topic, int partitions) {
        String group = "java-static";
        String[] instance = {"group.instance.id", "one"};
        KafkaConsumer<String, String> one = consumer(bootstrap, group, instance);
        KafkaConsumer<String, String> two = consumer(bootstrap, group, "group.instance.id", "two");
        one.subscribe(List.of(topic));
        two.subscribe(List.of(topic));
        String settled = until(List.of(one, two), partitions / 2, partitions / 2);
        Set<TopicPartition> before = one.assignment();
        one.close();
        one = consumer(bootstrap, group, instance);
        one.subscribe(List.of(topic));
        String again = until(List.of(one, two), partitions / 2, partitions / 2);
        boolean same = before.equals(one.assignment());
        System.out.println("static=" + settled + " " + again + " " + (same ? "kept" : "moved"));
        one.close();
        two.close();
    }

    private static void commits(String bootstrap, String topic, int partitions) {
        String group = "java-commits";
        int read = 0;
        try (KafkaConsumer<String, String> one = consumer(bootstrap, group)) {
            one.subscribe(List.of(topic));
            until(List.of(one), partitions);
            one.seekToBeginning(one.assignment());
            long end = System.currentTimeMillis() + LIMIT_MS;
            while (read < 10 * partitions && System.currentTimeMillis() < end) read += one.poll(POLL).count();
            one.commitSync();
        }
        try (KafkaConsumer<String, String> one = consumer(bootstrap, group)) {
            one.subscribe(List.of(topic));
            until(List.of(one), partitions);
            long sum = 0;
            for (OffsetAndMetadata each : one.committed(one.assignment()).values()) sum += each.offset();
            System.out.println("commits=" + read + " " + sum);
        }
    }
}
