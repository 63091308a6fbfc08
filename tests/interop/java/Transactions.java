import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/**
 * What transactions of kafka-clients do to a broker: one scenario per method, one line of output per
 * scenario, `name=value`. It compiles against every version from 2.8, and the test checks the lines.
 *
 * Arguments: bootstrap servers, a prefix for topics, groups and transactional ids, the scenarios to run.
 */
public final class Transactions {
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer";
    private static final String TIMEOUT_MS = "15000";
    private static final long WAIT_MS = 30_000;

    private final String bootstrap;
    private final String prefix;
    private final Admin admin;

    private Transactions(String bootstrap, String prefix) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "request.timeout.ms", TIMEOUT_MS));
    }

    public static void main(String[] arguments) throws Exception {
        Transactions transactions = new Transactions(arguments[0], arguments[1]);
        for (int i = 2; i < arguments.length; i++) {
            System.out.println(arguments[i] + "=" + transactions.run(arguments[i]));
        }
        System.exit(0);
    }

    private Object run(String name) {
        try {
            switch (name) {
                case "commit": return commit();
                case "abort": return abort();
                case "held": return held();
                case "empty": return empty();
                case "many": return many();
                case "fencing": return fencing();
                case "takeover": return takeover();
                case "timeout": return timeout();
                case "limits": return limits();
                case "offsets": return offsets();
                case "pending": return pending();
                case "generation": return generation();
                case "fenced-by-admin": return fencedByAdmin();
                default: return "no such scenario";
            }
        } catch (Exception error) {
            error.printStackTrace();
            return "failed: " + error;
        }
    }

    /** Ends under both isolation levels before and after a commit over two partitions, and what is read. */
    private Object commit() throws Exception {
        String topic = topic("commit", 2);
        List<Object> seen = new ArrayList<>();
        try (KafkaProducer<String, String> producer = transactional("commit")) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, "a", 5);
            send(producer, topic, 1, "b", 5);
            producer.flush();
            seen.add(ends(topic, 0));
            producer.commitTransaction();
            seen.add(endsOnceStable(topic, 0));
            seen.add(endsOnceStable(topic, 1));
        }
        seen.add(read(topic, 2, "read_committed").size());
        return seen;
    }

    /** An aborted, then a committed transaction of one producer. */
    private Object abort() throws Exception {
        String topic = topic("abort", 1);
        try (KafkaProducer<String, String> producer = transactional("abort")) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, "undone", 3);
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            send(producer, topic, 0, "done", 2);
            producer.commitTransaction();
        }
        return List.of(endsOnceStable(topic, 0), read(topic, 1, "read_committed"), read(topic, 1, "read_uncommitted"));
    }

    /** Records outside of transactions wait behind one that is open. */
    private Object held() throws Exception {
        String topic = topic("held", 1);
        List<Object> seen = new ArrayList<>();
        try (KafkaProducer<String, String> producer = transactional("held"); KafkaProducer<String, String> plain = producer()) {
            producer.initTransactions();
            producer.beginTransaction();
            send(plain, topic, 0, "before", 1);
            plain.flush();
            send(producer, topic, 0, "within", 1);
            producer.flush();
            send(plain, topic, 0, "after", 1);
            plain.flush();
            seen.add(read(topic, 1, "read_committed"));
            producer.abortTransaction();
        }
        seen.add(endsOnceStable(topic, 0));
        seen.add(read(topic, 1, "read_committed"));
        return seen;
    }

    /** Transactions of no records leave no markers. */
    private Object empty() throws Exception {
        String topic = topic("empty", 1);
        try (KafkaProducer<String, String> producer = transactional("empty")) {
            producer.initTransactions();
            for (int i = 0; i < 3; i++) {
                producer.beginTransaction();
                producer.commitTransaction();
                producer.beginTransaction();
                producer.abortTransaction();
            }
            producer.beginTransaction();
            send(producer, topic, 0, "full", 1);
            producer.commitTransaction();
        }
        return List.of(endsOnceStable(topic, 0), read(topic, 1, "read_committed"));
    }

    /** Two producers' transactions interleaved on three partitions, every third of them aborted. */
    private Object many() throws Exception {
        String topic = topic("many", 3);
        Set<String> wanted = new HashSet<>();
        try (KafkaProducer<String, String> one = transactional("many-1"); KafkaProducer<String, String> two = transactional("many-2")) {
            one.initTransactions();
            two.initTransactions();
            for (int i = 0; i < 40; i++) {
                one.beginTransaction();
                two.beginTransaction();
                for (int partition = 0; partition < 3; partition++) {
                    send(one, topic, partition, "one-" + i + "-" + partition, 2);
                    send(two, topic, partition, "two-" + i + "-" + partition, 2);
                }
                end(one, topic, "one-" + i, i % 3 != 0, wanted);
                end(two, topic, "two-" + i, i % 3 != 1, wanted);
            }
        }
        for (int partition = 0; partition < 3; partition++) {
            endsOnceStable(topic, partition);
        }
        List<String> read = read(topic, 3, "read_committed");
        return List.of(read.size(), new HashSet<>(read).equals(wanted), read(topic, 3, "read_uncommitted").size());
    }

    private static void end(
            KafkaProducer<String, String> producer, String topic, String name, boolean isCommit, Set<String> wanted) {
        if (!isCommit) {
            producer.flush();
            producer.abortTransaction();
            return;
        }
        producer.commitTransaction();
        for (int partition = 0; partition < 3; partition++) {
            wanted.add(name + "-" + partition + "-0");
            wanted.add(name + "-" + partition + "-1");
        }
    }

    /** A second producer of the same id aborts what the first has open, which may neither go on nor commit. */
    private Object fencing() throws Exception {
        String topic = topic("fencing", 1);
        List<Object> seen = new ArrayList<>();
        KafkaProducer<String, String> zombie = transactional("fencing");
        try (KafkaProducer<String, String> heir = transactional("fencing")) {
            zombie.initTransactions();
            zombie.beginTransaction();
            send(zombie, topic, 0, "zombie", 1);
            zombie.flush();
            heir.initTransactions();
            seen.add(refusal(() -> zombie.commitTransaction()));
            heir.beginTransaction();
            send(heir, topic, 0, "heir", 1);
            heir.commitTransaction();
        } finally {
            zombie.close(Duration.ZERO);
        }
        seen.add(endsOnceStable(topic, 0));
        seen.add(read(topic, 1, "read_committed"));
        return seen;
    }

    /** What a fenced producer is told when it sends, and when it begins anew. */
    private Object takeover() throws Exception {
        String topic = topic("takeover", 1);
        List<Object> seen = new ArrayList<>();
        KafkaProducer<String, String> zombie = transactional("takeover");
        try (KafkaProducer<String, String> heir = transactional("takeover")) {
            zombie.initTransactions();
            zombie.beginTransaction();
            send(zombie, topic, 0, "first", 1);
            zombie.commitTransaction();
            heir.initTransactions();
            zombie.beginTransaction();
            Future<RecordMetadata> sent = zombie.send(new ProducerRecord<>(topic, 0, null, "late"));
            seen.add(refusal(() -> sent.get()));
            seen.add(refusal(() -> zombie.commitTransaction()));
        } finally {
            zombie.close(Duration.ZERO);
        }
        seen.add(read(topic, 1, "read_uncommitted"));
        return seen;
    }

    /** A transaction that is left open longer than its producer said is aborted; what its producer is told then. */
    private Object timeout() throws Exception {
        String topic = topic("timeout", 1);
        List<Object> seen = new ArrayList<>();
        KafkaProducer<String, String> slow = transactional("timeout", "transaction.timeout.ms", "3000");
        try (KafkaProducer<String, String> heir = transactional("timeout")) {
            slow.initTransactions();
            slow.beginTransaction();
            send(slow, topic, 0, "slow", 1);
            slow.flush();
            seen.add(ends(topic, 0));
            seen.add(endsOnceStable(topic, 0));
            seen.add(refusal(() -> slow.commitTransaction()));
            heir.initTransactions();
            heir.beginTransaction();
            send(heir, topic, 0, "heir", 1);
            heir.commitTransaction();
        } finally {
            slow.close(Duration.ZERO);
        }
        endsOnceStable(topic, 0);
        seen.add(read(topic, 1, "read_committed"));
        return seen;
    }

    /** A timeout above transaction.max.timeout.ms. */
    private Object limits() throws Exception {
        try (KafkaProducer<String, String> producer = transactional("limits", "transaction.timeout.ms", "900001")) {
            return refusal(() -> producer.initTransactions());
        }
    }

    /** Consume, transform, produce: every other transaction is aborted and its input read again. */
    private Object offsets() throws Exception {
        String input = filled("offsets-input", 40);
        String output = topic("offsets-output", 1);
        TopicPartition partition = new TopicPartition(input, 0);
        int aborts = 0;
        try (KafkaConsumer<String, String> consumer = consumer("offsets", "isolation.level", "read_committed", "max.poll.records", "10");
                KafkaProducer<String, String> producer = transactional("offsets")) {
            consumer.subscribe(List.of(input));
            producer.initTransactions();
            for (int round = 0; committed(consumer, partition) < 40; round++) {
                List<ConsumerRecord<String, String>> batch = poll(consumer, 10);
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : batch) {
                    producer.send(new ProducerRecord<>(output, 0, record.key(), record.value() + "!"));
                }
                long next = batch.get(batch.size() - 1).offset() + 1;
                producer.sendOffsetsToTransaction(
                    Map.of(partition, new OffsetAndMetadata(next, "round " + round)), consumer.groupMetadata());
                if (round % 2 == 0) {
                    producer.flush();
                    producer.abortTransaction();
                    aborts++;
                    consumer.seek(partition, committed(consumer, partition));
                } else {
                    producer.commitTransaction();
                }
            }
        }
        endsOnceStable(output, 0);
        List<String> wanted = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            wanted.add("v" + i + "!");
        }
        return List.of(read(output, 1, "read_committed").equals(wanted), aborts, read(output, 1, "read_uncommitted").size());
    }

    /** An offset within an open transaction: what is shown meanwhile, after an abort, and after a commit. */
    private Object pending() throws Exception {
        String input = filled("pending", 10);
        TopicPartition partition = new TopicPartition(input, 0);
        List<Object> seen = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("pending", "isolation.level", "read_committed");
                KafkaProducer<String, String> producer = transactional("pending")) {
            consumer.subscribe(List.of(input));
            poll(consumer, 10);
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(3)));
            producer.initTransactions();
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(5)), consumer.groupMetadata());
            seen.add(refusal(() -> consumer.committed(Set.of(partition), Duration.ofMillis(500))));
            seen.add(admin.listConsumerGroupOffsets(prefix + "pending").partitionsToOffsetAndMetadata().get().get(partition).offset());
            producer.abortTransaction();
            seen.add(committed(consumer, partition));
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(7)), consumer.groupMetadata());
            producer.commitTransaction();
            seen.add(committed(consumer, partition));
        }
        return seen;
    }

    /** Offsets in the name of a member that the group does not know, and of a group without members. */
    private Object generation() throws Exception {
        String input = filled("generation", 5);
        TopicPartition partition = new TopicPartition(input, 0);
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(partition, new OffsetAndMetadata(2));
        List<Object> seen = new ArrayList<>();
        try (KafkaProducer<String, String> producer = transactional("generation");
                KafkaConsumer<String, String> consumer = consumer("generation", "isolation.level", "read_committed")) {
            producer.initTransactions();
            consumer.subscribe(List.of(input));
            poll(consumer, 5);
            producer.beginTransaction();
            seen.add(refusal(() -> producer.sendOffsetsToTransaction(offsets, new org.apache.kafka.clients.consumer.ConsumerGroupMetadata(
                prefix + "generation", 77, "stranger", java.util.Optional.empty()))));
            producer.abortTransaction();
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(offsets, new org.apache.kafka.clients.consumer.ConsumerGroupMetadata(prefix + "generation"));
            producer.commitTransaction();
            seen.add(committed(consumer, partition));
        }
        return seen;
    }

    /** Admin.fenceProducers, which came in 3.1. */
    private Object fencedByAdmin() throws Exception {
        String topic = topic("fenced-by-admin", 1);
        java.lang.reflect.Method fence;
        try {
            fence = Admin.class.getMethod("fenceProducers", Collection.class);
        } catch (NoSuchMethodException before31) {
            return "not there";
        }
        KafkaProducer<String, String> producer = transactional("fenced-by-admin");
        try {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, "undone", 1);
            producer.flush();
            Object result = fence.invoke(admin, List.of(prefix + "fenced-by-admin"));
            ((KafkaFuture<?>) result.getClass().getMethod("all").invoke(result)).get();
            String told = refusal(() -> producer.commitTransaction());
            return List.of(told, endsOnceStable(topic, 0), read(topic, 1, "read_committed"));
        } finally {
            producer.close(Duration.ZERO);
        }
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
        } catch (RuntimeException error) {
            boolean isWrapped = error.getCause() != null && error.getClass() == org.apache.kafka.common.KafkaException.class;
            return (isWrapped ? error.getCause() : error).getClass().getSimpleName();
        }
    }

    /** `stable/high`: the offsets that readers of each isolation level may read up to. */
    private String ends(String topic, int partition) throws Exception {
        return end(topic, partition, IsolationLevel.READ_COMMITTED) + "/" + end(topic, partition, IsolationLevel.READ_UNCOMMITTED);
    }

    /** As `ends`, once they are equal: markers are written after the producer has its answer. */
    private String endsOnceStable(String topic, int partition) throws Exception {
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (true) {
            String ends = ends(topic, partition);
            String[] both = ends.split("/");
            if (both[0].equals(both[1]) || System.currentTimeMillis() > deadline) {
                return ends;
            }
            Thread.sleep(10);
        }
    }

    private long end(String topic, int partition, IsolationLevel isolation) throws Exception {
        TopicPartition asked = new TopicPartition(topic, partition);
        return admin.listOffsets(Map.of(asked, OffsetSpec.latest()), new ListOffsetsOptions(isolation)).all().get().get(asked).offset();
    }

    private static long committed(KafkaConsumer<String, String> consumer, TopicPartition partition) {
        OffsetAndMetadata found = consumer.committed(Set.of(partition)).get(partition);
        return found == null ? 0 : found.offset();
    }

    private String topic(String name, int partitions) throws Exception {
        String topic = prefix + name;
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        for (int partition = 0; partition < partitions; partition++) {
            awaitServed(topic, partition);
        }
        return topic;
    }

    private void awaitServed(String topic, int partition) throws Exception {
        while (true) {
            try {
                ends(topic, partition);
                return;
            } catch (ExecutionException notYet) {
                Thread.sleep(20);
            }
        }
    }

    private String filled(String name, int count) throws Exception {
        String topic = topic(name, 1);
        try (KafkaProducer<String, String> producer = producer()) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, 0, "k" + i, "v" + i));
            }
        }
        return topic;
    }

    private static void send(KafkaProducer<String, String> producer, String topic, int partition, String stem, int count) {
        for (int i = 0; i < count; i++) {
            producer.send(new ProducerRecord<>(topic, partition, null, stem + "-" + i));
        }
    }

    /** Everything up to the end that the isolation level shows now, by partition and offset. */
    private List<String> read(String topic, int partitions, String isolation) {
        Map<Integer, List<String>> found = new TreeMap<>();
        try (KafkaConsumer<String, String> consumer = consumer("reader", "isolation.level", isolation)) {
            List<TopicPartition> all = new ArrayList<>();
            for (int i = 0; i < partitions; i++) {
                all.add(new TopicPartition(topic, i));
            }
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            long deadline = System.currentTimeMillis() + WAIT_MS;
            while (!all.stream().allMatch(partition -> consumer.position(partition) >= ends.get(partition))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    found.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(record.value());
                }
                if (System.currentTimeMillis() > deadline) {
                    throw new IllegalStateException("the reader does not reach " + ends);
                }
            }
        }
        List<String> values = new ArrayList<>();
        found.values().forEach(values::addAll);
        return values;
    }

    private static List<ConsumerRecord<String, String>> poll(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (records.size() < count) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException(records.size() + " of " + count + " records came");
            }
            consumer.poll(Duration.ofMillis(200)).forEach(records::add);
        }
        return records;
    }

    private KafkaProducer<String, String> transactional(String id, String... config) {
        String[] all = new String[config.length + 2];
        all[0] = "transactional.id";
        all[1] = prefix + id;
        System.arraycopy(config, 0, all, 2, config.length);
        return producer(all);
    }

    private KafkaProducer<String, String> producer(String... config) {
        Map<String, Object> properties = new HashMap<>();
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
