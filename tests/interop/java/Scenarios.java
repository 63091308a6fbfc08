import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * What kafka-clients does to a broker: one scenario per method, one line of output per scenario,
 * `name=value`, where the value is the printed form of sorted collections. It compiles against
 * every version from 2.8, and the test checks the lines.
 *
 * Arguments: bootstrap servers, a prefix for topics and groups, the scenarios to run.
 */
public final class Scenarios {
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer";
    /** An hour ago: records must be younger than their topic's retention. */
    private static final long BASE_TIMESTAMP = System.currentTimeMillis() - 3_600_000L;

    private static final String TIMEOUT_MS = "15000";

    private final String bootstrap;
    private final String prefix;
    private final Admin admin;

    private Scenarios(String bootstrap, String prefix) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
        this.admin = Admin.create(Map.of(
            "bootstrap.servers", bootstrap, "request.timeout.ms", TIMEOUT_MS, "default.api.timeout.ms", TIMEOUT_MS));
    }

    public static void main(String[] arguments) throws Exception {
        Scenarios scenarios = new Scenarios(arguments[0], arguments[1]);
        for (int i = 2; i < arguments.length; i++) {
            System.out.println(arguments[i] + "=" + scenarios.run(arguments[i]));
        }
        scenarios.admin.close();
        System.exit(0);
    }

    private Object run(String name) {
        try {
            switch (name) {
                case "codecs": return codecs();
                case "idempotent": return idempotent();
                case "acks": return acks();
                case "commits": return commits();
                case "seeks": return seeks();
                case "rebalance": return rebalance();
                case "cooperative": return cooperative();
                case "topics": return topics();
                case "configs": return configs();
                case "groups": return groups();
                case "offsets": return offsets();
                default: return "no such scenario";
            }
        } catch (Exception error) {
            error.printStackTrace();
            return "failed: " + error;
        }
    }

    /** Every codec, one partition each; what is read back, as `partition:offset:key:value`. */
    private Object codecs() throws Exception {
        String topic = topic("codecs", 5);
        String[] codecs = {"none", "gzip", "snappy", "lz4", "zstd"};
        for (int partition = 0; partition < codecs.length; partition++) {
            try (KafkaProducer<String, String> producer = producer("compression.type", codecs[partition], "linger.ms", "20")) {
                for (int i = 0; i < 30; i++) {
                    producer.send(new ProducerRecord<>(topic, partition, "k" + i, codecs[partition] + i + "x".repeat(100)));
                }
            }
        }
        Map<Integer, List<String>> read = new TreeMap<>();
        for (ConsumerRecord<String, String> record : readAll(topic, 5, 150)) {
            String wanted = codecs[record.partition()] + record.offset() + "x".repeat(100);
            boolean good = record.value().equals(wanted) && record.key().equals("k" + record.offset());
            read.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(good ? "good" : record.value());
        }
        Map<Integer, String> summary = new TreeMap<>();
        read.forEach((partition, values) -> summary.put(partition, values.size() + new TreeSet<>(values).toString()));
        return summary;
    }

    /** Many records through an idempotent producer with five requests in flight: offsets in send order. */
    private Object idempotent() throws Exception {
        String topic = topic("idempotent", 1);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer(
                "enable.idempotence", "true", "acks", "all", "batch.size", "500", "max.in.flight.requests.per.connection", "5")) {
            for (int i = 0; i < 2000; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, null, "value-" + i)));
            }
        }
        int inOrder = 0;
        for (int i = 0; i < sent.size(); i++) {
            inOrder += sent.get(i).get().offset() == i ? 1 : 0;
        }
        int same = 0;
        for (ConsumerRecord<String, String> record : readAll(topic, 1, 2000)) {
            same += record.value().equals("value-" + record.offset()) ? 1 : 0;
        }
        return List.of(inOrder, same);
    }

    /** acks 0, 1 and all: the offsets that the producer is told. */
    private Object acks() throws Exception {
        Map<String, List<Long>> offsets = new TreeMap<>();
        for (String acks : new String[] {"0", "1", "all"}) {
            String topic = topic("acks-" + acks, 1);
            List<Long> told = new ArrayList<>();
            try (KafkaProducer<String, String> producer = producer("acks", acks, "enable.idempotence", "false")) {
                for (int i = 0; i < 3; i++) {
                    told.add(producer.send(new ProducerRecord<>(topic, "v" + i)).get().offset());
                }
            }
            readAll(topic, 1, 3);
            offsets.put(acks, told);
        }
        return offsets;
    }

    /** Sync, async and specific commits with metadata. */
    private Object commits() throws Exception {
        String topic = filled("commits", 10);
        TopicPartition partition = new TopicPartition(topic, 0);
        List<Object> seen = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("commits", "max.poll.records", "4")) {
            consumer.subscribe(List.of(topic));
            poll(consumer, 4);
            consumer.commitSync();
            seen.add(committed(consumer, partition).offset());
            AtomicReference<Object> called = new AtomicReference<>();
            poll(consumer, 4);
            consumer.commitAsync((offsets, error) -> called.set(error == null ? offsets.get(partition).offset() : error));
            while (called.get() == null) {
                consumer.pause(Set.of(partition));
                consumer.poll(Duration.ofMillis(50));
            }
            seen.add(called.get());
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(6, "by hand")));
            OffsetAndMetadata found = committed(consumer, partition);
            seen.add(found.offset() + " " + found.metadata());
        }
        try (KafkaConsumer<String, String> consumer = consumer("commits", "max.poll.records", "4")) {
            consumer.subscribe(List.of(topic));
            seen.add(poll(consumer, 4).get(0).offset());
        }
        return seen;
    }

    private Object seeks() throws Exception {
        String topic = filled("seeks", 10);
        TopicPartition partition = new TopicPartition(topic, 0);
        List<Object> seen = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("seeks", "max.poll.records", "1")) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 7);
            seen.add(poll(consumer, 1).get(0).offset());
            consumer.seekToBeginning(List.of(partition));
            seen.add(consumer.position(partition));
            consumer.seekToEnd(List.of(partition));
            seen.add(consumer.position(partition));
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, BASE_TIMESTAMP + 4)).get(partition);
            seen.add(found.offset());
            seen.add(found.timestamp() - BASE_TIMESTAMP);
            seen.add(consumer.offsetsForTimes(Map.of(partition, BASE_TIMESTAMP + 100)).get(partition));
            seen.add(consumer.beginningOffsets(List.of(partition)).get(partition));
            seen.add(consumer.endOffsets(List.of(partition)).get(partition));
            consumer.seek(partition, 5000);
            seen.add(poll(consumer, 1).get(0).offset());
        }
        return seen;
    }

    /** Two eager members share, then one leaves. */
    private Object rebalance() throws Exception {
        List<String> seen = new ArrayList<>();
        String[] assignors = {"RangeAssignor", "RoundRobinAssignor", "StickyAssignor"};
        for (String assignor : assignors) {
            seen.add(shared(assignor));
        }
        return seen;
    }

    private Object cooperative() throws Exception {
        return shared("CooperativeStickyAssignor");
    }

    private String shared(String assignor) throws Exception {
        String topic = topic("shared-" + assignor, 4);
        String strategy = "org.apache.kafka.clients.consumer." + assignor;
        String[] config = {"partition.assignment.strategy", strategy, "heartbeat.interval.ms", "200"};
        String group = "shared-" + assignor;
        int[] revoked = {0};
        KafkaConsumer<String, String> one = consumer(group, config);
        KafkaConsumer<String, String> two = consumer(group, config);
        one.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                revoked[0] += partitions.size();
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            }
        });
        pollUntil(one, 4, two, -1);
        two.subscribe(List.of(topic));
        pollUntil(one, 2, two, 2);
        Set<TopicPartition> both = new java.util.HashSet<>(one.assignment());
        both.addAll(two.assignment());
        int distinct = both.size();
        int revokedOnJoin = revoked[0];
        two.close();
        pollUntil(one, 4, null, -1);
        int held = one.assignment().size();
        one.close();
        return distinct + " shared, " + revokedOnJoin + " revoked on join, " + held + " after leave";
    }

    private void pollUntil(KafkaConsumer<String, String> one, int first, KafkaConsumer<String, String> two, int second) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (System.nanoTime() < deadline) {
            one.poll(Duration.ofMillis(50));
            if (second >= 0) {
                two.poll(Duration.ofMillis(50));
            }
            boolean reached = one.assignment().size() == first && (second < 0 || two.assignment().size() == second);
            if (reached) {
                return;
            }
        }
        throw new IllegalStateException("the group did not settle: " + one.assignment());
    }

    private Object topics() throws Exception {
        String topic = topic("topics", 2);
        List<Object> seen = new ArrayList<>();
        TopicDescription described = describe(topic);
        seen.add(described.partitions().size());
        seen.add(described.partitions().get(0).leader().id());
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        while (describe(topic).partitions().size() != 3) {
            Thread.sleep(20);
        }
        seen.add(refusal(() -> admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get()));
        seen.add(refusal(() -> admin.createTopics(List.of(new NewTopic("bad name", 1, (short) 1))).all().get()));
        seen.add(refusal(() -> admin.createTopics(List.of(new NewTopic(prefix + "r", 1, (short) 3))).all().get()));
        seen.add(refusal(() -> admin.createTopics(List.of(new NewTopic(prefix + "p", 0, (short) 1))).all().get()));
        seen.add(refusal(() -> admin.deleteTopics(List.of(prefix + "none")).all().get()));
        admin.deleteTopics(List.of(topic)).all().get();
        while (admin.listTopics().names().get().contains(topic)) {
            Thread.sleep(20);
        }
        seen.add(refusal(() -> describe(topic)));
        return seen;
    }

    private Object configs() throws Exception {
        String topic = topic("configs", 1);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        List<Object> seen = new ArrayList<>();
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "12345"), AlterConfigOp.OpType.SET);
        AlterConfigOp append = new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(set, append))).all().get();
        while (!config(resource, "retention.ms").value().equals("12345")) {
            Thread.sleep(20);
        }
        seen.add(config(resource, "cleanup.policy").value());
        seen.add(config(resource, "retention.ms").source());
        AlterConfigOp delete = new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(delete))).all().get();
        while (config(resource, "retention.ms").value().equals("12345")) {
            Thread.sleep(20);
        }
        seen.add(config(resource, "retention.ms").value());
        seen.add(config(resource, "retention.ms").source());
        AlterConfigOp wrong = new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET);
        seen.add(refusal(() -> admin.incrementalAlterConfigs(Map.of(resource, List.of(wrong))).all().get()));
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "0");
        seen.add(config(broker, "num.partitions").value());
        return seen;
    }

    private Object groups() throws Exception {
        String topic = filled("groups", 5);
        String group = prefix + "groups";
        List<Object> seen = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("groups", "client.id", "java-member")) {
            consumer.subscribe(List.of(topic));
            poll(consumer, 5);
            consumer.commitSync();
            ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            seen.add(described.state());
            seen.add(described.members().size());
            seen.add(described.members().iterator().next().clientId());
            seen.add(described.partitionAssignor());
            seen.add(refusal(() -> admin.deleteConsumerGroups(List.of(group)).all().get()));
        }
        seen.add(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            .get(new TopicPartition(topic, 0)).offset());
        seen.add(admin.listConsumerGroups().all().get().stream().anyMatch(listed -> listed.groupId().equals(group)));
        TopicPartition partition = new TopicPartition(topic, 0);
        admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(2))).all().get();
        seen.add(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition).offset());
        admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
        seen.add(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition));
        admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(1))).all().get();
        admin.deleteConsumerGroups(List.of(group)).all().get();
        seen.add(admin.listConsumerGroups().all().get().stream().anyMatch(listed -> listed.groupId().equals(group)));
        return seen;
    }

    private Object offsets() throws Exception {
        String topic = filled("offsets", 10);
        TopicPartition partition = new TopicPartition(topic, 0);
        List<Object> seen = new ArrayList<>();
        seen.add(listed(partition, OffsetSpec.earliest()));
        seen.add(listed(partition, OffsetSpec.latest()));
        seen.add(listed(partition, OffsetSpec.forTimestamp(BASE_TIMESTAMP + 6)));
        seen.add(admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(3)))
            .lowWatermarks().get(partition).get().lowWatermark());
        seen.add(listed(partition, OffsetSpec.earliest()));
        seen.add(readAll(topic, 1, 7).get(0).offset());
        int node = admin.describeCluster().nodes().get().iterator().next().id();
        long size = admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).values().iterator().next()
            .replicaInfos().get(partition).size();
        seen.add(size > 0);
        return seen;
    }

    private long listed(TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).all().get().get(partition).offset();
    }

    private ConfigEntry config(ConfigResource resource, String name) throws Exception {
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        return config.get(name);
    }

    private TopicDescription describe(String topic) throws Exception {
        return describeTopics(List.of(topic)).get(topic);
    }

    /** `all()` went away in 4.0 and `allTopicNames()` came in 3.1. */
    @SuppressWarnings("unchecked")
    private Map<String, TopicDescription> describeTopics(List<String> topics) throws Exception {
        Object result = admin.describeTopics(topics);
        java.lang.reflect.Method method;
        try {
            method = result.getClass().getMethod("allTopicNames");
        } catch (NoSuchMethodException before31) {
            method = result.getClass().getMethod("all");
        }
        return ((org.apache.kafka.common.KafkaFuture<Map<String, TopicDescription>>) method.invoke(result)).get();
    }

    private interface Attempt {
        void run() throws Exception;
    }

    private static String refusal(Attempt attempt) throws Exception {
        try {
            attempt.run();
            return "allowed";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        }
    }

    private static OffsetAndMetadata committed(KafkaConsumer<String, String> consumer, TopicPartition partition) {
        return consumer.committed(Set.of(partition)).get(partition);
    }

    private String topic(String name, int partitions) throws Exception {
        String topic = prefix + name;
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        while (true) {
            try {
                if (describe(topic).partitions().stream().allMatch(partition -> partition.leader() != null)) {
                    return topic;
                }
            } catch (ExecutionException notYet) {
                Thread.sleep(20);
            }
        }
    }

    private String filled(String name, int count) throws Exception {
        String topic = topic(name, 1);
        try (KafkaProducer<String, String> producer = producer()) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, 0, BASE_TIMESTAMP + i, "k" + i, "v" + i));
            }
        }
        return topic;
    }

    private List<ConsumerRecord<String, String>> readAll(String topic, int partitions, int count) {
        try (KafkaConsumer<String, String> consumer = consumer("reader")) {
            List<TopicPartition> all = new ArrayList<>();
            for (int i = 0; i < partitions; i++) {
                all.add(new TopicPartition(topic, i));
            }
            consumer.assign(all);
            consumer.seekToBeginning(all);
            return poll(consumer, count);
        }
    }

    private static List<ConsumerRecord<String, String>> poll(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (records.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(records.size() + " of " + count + " records came");
            }
            ConsumerRecords<String, String> polled = consumer.poll(Duration.ofMillis(200));
            polled.forEach(records::add);
        }
        return records;
    }

    private KafkaProducer<String, String> producer(String... config) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("request.timeout.ms", "10000");
        properties.put("delivery.timeout.ms", TIMEOUT_MS);
        properties.put("max.block.ms", TIMEOUT_MS);
        properties.put("key.serializer", SERIALIZER);
        properties.put("value.serializer", SERIALIZER);
        for (int i = 0; i < config.length; i += 2) {
            properties.put(config[i], config[i + 1]);
        }
        return new KafkaProducer<>(properties);
    }

    private KafkaConsumer<String, String> consumer(String group, String... config) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("default.api.timeout.ms", TIMEOUT_MS);
        properties.put("group.id", prefix + group);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("key.deserializer", DESERIALIZER);
        properties.put("value.deserializer", DESERIALIZER);
        for (int i = 0; i < config.length; i += 2) {
            properties.put(config[i], config[i + 1]);
        }
        return new KafkaConsumer<>(properties);
    }
}
