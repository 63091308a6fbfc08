import java.time.Duration;
import java.util.*;
import java.util.function.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** Members of share groups; prints one line for each scenario. Locks last a second. */
public class ShareConsumers {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long LIMIT_MS = 30_000;
    private static final long SILENCE_MS = 700;

    private final String bootstrap;
    private final Admin admin;

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            ShareConsumers all = new ShareConsumers(arguments[0], admin);
            all.say("shared", all::shared);
            all.say("explicit", all::explicit);
            all.say("expired", all::expired);
            all.say("renewed", all::renewed);
            all.say("closed", all::closed);
            all.say("limit", all::limit);
            all.say("committed", all::committed);
            all.say("few", all::few);
        }
    }

    private ShareConsumers(String bootstrap, Admin admin) {
        this.bootstrap = bootstrap;
        this.admin = admin;
    }

    private interface Scenario {
        String run(String name) throws Exception;
    }

    private void say(String name, Scenario scenario) {
        String said;
        try {
            said = scenario.run("share-" + name);
        } catch (Exception error) {
            error.printStackTrace();
            said = error.toString();
        }
        System.out.println(name + "=" + said);
    }

    /** A topic and a group of the same name that begins at its start. */
    private void prepare(String name, int partitions, String... more) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        Map<ConfigResource, Collection<AlterConfigOp>> changes = new HashMap<>();
        List<AlterConfigOp> own = new ArrayList<>();
        own.add(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET));
        for (int i = 0; i < more.length; i += 2)
            own.add(new AlterConfigOp(new ConfigEntry(more[i], more[i + 1]), AlterConfigOp.OpType.SET));
        changes.put(new ConfigResource(ConfigResource.Type.GROUP, name), own);
        admin.incrementalAlterConfigs(changes).all().get();
    }

    private KafkaProducer<String, String> producer(String... more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) properties.put(more[i], more[i + 1]);
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    private void produce(String topic, int count, int partitions) {
        try (KafkaProducer<String, String> producer = producer("linger.ms", "5")) {
            for (int i = 0; i < count; i++)
                producer.send(new ProducerRecord<>(topic, i % partitions, null, String.valueOf(i)));
        }
    }

    private KafkaShareConsumer<String, String> member(String name, String... more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", name);
        properties.put("share.acknowledgement.mode", "explicit");
        for (int i = 0; i < more.length; i += 2) properties.put(more[i], more[i + 1]);
        KafkaShareConsumer<String, String> member =
            new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        member.subscribe(List.of(name));
        return member;
    }

    /** Polls until so many records came, or for the time of a silence. */
    private static List<ConsumerRecord<String, String>> take(KafkaShareConsumer<String, String> member, int count, long limit,
            Function<ConsumerRecord<String, String>, AcknowledgeType> judge) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long end = System.currentTimeMillis() + limit;
        while (found.size() < count && System.currentTimeMillis() < end) {
            for (ConsumerRecord<String, String> record : member.poll(POLL)) {
                found.add(record);
                AcknowledgeType type = judge == null ? null : judge.apply(record);
                if (type != null) member.acknowledge(record, type);
            }
            if (judge == null && !found.isEmpty()) break;
            for (Map.Entry<TopicIdPartition, Optional<org.apache.kafka.common.KafkaException>> each : member.commitSync().entrySet())
                if (each.getValue().isPresent()) throw each.getValue().get();
        }
        return found;
    }

    private static String values(List<ConsumerRecord<String, String>> records) {
        StringJoiner joined = new StringJoiner(" ");
        for (ConsumerRecord<String, String> record : records) joined.add(record.value() + "x" + record.deliveryCount().get());
        return joined.toString();
    }

    /** Two members who acknowledge by polling on get all records of four partitions, each once. */
    private String shared(String name) throws Exception {
        int count = 5000;
        prepare(name, 4);
        produce(name, count, 4);
        Map<String, Integer> seen = new HashMap<>();
        int[] each = new int[2];
        try (KafkaShareConsumer<String, String> one = member(name, "share.acknowledgement.mode", "implicit", "max.poll.records", "100");
             KafkaShareConsumer<String, String> two = member(name, "share.acknowledgement.mode", "implicit", "max.poll.records", "100")) {
            List<KafkaShareConsumer<String, String>> both = List.of(one, two);
            long end = System.currentTimeMillis() + LIMIT_MS;
            while (seen.size() < count && System.currentTimeMillis() < end)
                for (int i = 0; i < 2; i++)
                    for (ConsumerRecord<String, String> record : both.get(i).poll(POLL)) {
                        seen.merge(record.value(), 1, Integer::sum);
                        each[i]++;
                    }
        }
        return seen.size() + " " + Collections.max(seen.values()) + " " + (each[0] > 0 && each[1] > 0);
    }

    private String explicit(String name) throws Exception {
        prepare(name, 1);
        produce(name, 9, 1);
        try (KafkaShareConsumer<String, String> member = member(name)) {
            List<ConsumerRecord<String, String>> first = take(member, 9, LIMIT_MS, record ->
                List.of(AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT).get(Integer.parseInt(record.value()) % 3));
            List<ConsumerRecord<String, String>> again = take(member, 3, LIMIT_MS, record -> AcknowledgeType.ACCEPT);
            List<ConsumerRecord<String, String>> rest = take(member, 1, SILENCE_MS, record -> AcknowledgeType.ACCEPT);
            return values(first) + ", " + values(again) + ", " + values(rest);
        }
    }

    private String expired(String name) throws Exception {
        prepare(name, 1);
        produce(name, 3, 1);
        try (KafkaShareConsumer<String, String> one = member(name); KafkaShareConsumer<String, String> two = member(name)) {
            String first = values(take(one, 3, LIMIT_MS, null));
            String second = values(take(two, 3, LIMIT_MS, record -> AcknowledgeType.ACCEPT));
            return first + ", " + second;
        }
    }

    private String renewed(String name) throws Exception {
        prepare(name, 1);
        produce(name, 3, 1);
        try (KafkaShareConsumer<String, String> one = member(name); KafkaShareConsumer<String, String> two = member(name)) {
            List<ConsumerRecord<String, String>> first = take(one, 3, LIMIT_MS, record -> AcknowledgeType.RENEW);
            for (int i = 0; i < 4; i++) {
                Thread.sleep(400);
                for (ConsumerRecord<String, String> record : one.poll(POLL)) one.acknowledge(record, AcknowledgeType.RENEW);
                one.commitSync();
            }
            String meanwhile = values(take(two, 1, 300, record -> AcknowledgeType.RELEASE));
            for (ConsumerRecord<String, String> record : one.poll(POLL)) one.acknowledge(record, AcknowledgeType.ACCEPT);
            boolean isDone = one.commitSync().values().stream().noneMatch(Optional::isPresent);
            return values(first) + ", " + meanwhile + ", " + isDone;
        }
    }

    private String closed(String name) throws Exception {
        prepare(name, 1);
        produce(name, 3, 1);
        KafkaShareConsumer<String, String> one = member(name);
        String first = values(take(one, 3, LIMIT_MS, null));
        one.close();
        try (KafkaShareConsumer<String, String> two = member(name)) {
            return first + ", " + values(take(two, 3, LIMIT_MS, record -> AcknowledgeType.ACCEPT));
        }
    }

    private String limit(String name) throws Exception {
        prepare(name, 1, "share.delivery.count.limit", "3");
        produce(name, 1, 1);
        try (KafkaShareConsumer<String, String> one = member(name)) {
            String all = values(take(one, 3, LIMIT_MS, record -> AcknowledgeType.RELEASE));
            return all + ", " + values(take(one, 1, SILENCE_MS, record -> AcknowledgeType.RELEASE));
        }
    }

    private String committed(String name) throws Exception {
        prepare(name, 1, "share.isolation.level", "read_committed");
        try (KafkaProducer<String, String> producer = producer("transactional.id", name)) {
            producer.initTransactions();
            for (int i = 0; i < 4; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(name, String.valueOf(i))).get();
                if (i % 2 == 0) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
        try (KafkaShareConsumer<String, String> one = member(name)) {
            String all = values(take(one, 2, LIMIT_MS, record -> AcknowledgeType.ACCEPT));
            return all + ", " + values(take(one, 1, SILENCE_MS, record -> AcknowledgeType.ACCEPT));
        }
    }

    private String few(String name) throws Exception {
        prepare(name, 1);
        produce(name, 10, 1);
        try (KafkaShareConsumer<String, String> one = member(name, "share.acquire.mode", "record_limit", "max.poll.records", "4")) {
            List<Integer> sizes = new ArrayList<>();
            long end = System.currentTimeMillis() + LIMIT_MS;
            while (sizes.stream().mapToInt(Integer::intValue).sum() < 10 && System.currentTimeMillis() < end) {
                ConsumerRecords<String, String> records = one.poll(POLL);
                if (records.isEmpty()) continue;
                sizes.add(records.count());
                for (ConsumerRecord<String, String> record : records) one.acknowledge(record);
                one.commitSync();
            }
            return sizes.toString();
        }
    }
}
