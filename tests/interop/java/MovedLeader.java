import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;

/**
 * Clients that may not ask for metadata again while a test lasts, and whose partition gets another leader: they go on
 * only if the answer that refuses them says who that is (KIP-951). Broker 0 leads the one partition of each topic, and
 * broker 1 should, by the order of its replicas.
 *
 * Arguments: bootstrap servers, a prefix for topics, the scenarios to run; each has the topic of its name.
 */
public final class MovedLeader {
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer";
    private static final String NEVER_MS = "600000";
    private static final String DELIVERY_MS = "40000";
    private static final Duration WAIT = Duration.ofSeconds(40);

    private final String bootstrap;
    private final String prefix;
    private final Admin admin;

    private MovedLeader(String bootstrap, String prefix) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        MovedLeader moved = new MovedLeader(arguments[0], arguments[1]);
        for (int i = 2; i < arguments.length; i++) {
            System.out.println(arguments[i] + "=" + moved.run(arguments[i]));
        }
        System.exit(0);
    }

    private Object run(String name) {
        try {
            switch (name) {
                case "producer": return produce();
                case "consumer": return consume();
                default: return "no such scenario";
            }
        } catch (Exception error) {
            error.printStackTrace();
            return "failed: " + error;
        }
    }

    /** The offsets of a record before the move and of one after it. */
    private Object produce() throws Exception {
        TopicPartition at = partition("producer");
        try (KafkaProducer<String, String> producer = producer(NEVER_MS)) {
            long before = send(producer, at);
            move(at);
            return List.of(before, send(producer, at));
        }
    }

    /** How many records are read before the move, and how many after it. */
    private Object consume() throws Exception {
        TopicPartition at = partition("consumer");
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "key.deserializer", DESERIALIZER, "value.deserializer", DESERIALIZER,
            "auto.offset.reset", "earliest", "retry.backoff.ms", NEVER_MS, "retry.backoff.max.ms", NEVER_MS,
            "metadata.max.age.ms", NEVER_MS);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
             KafkaProducer<String, String> producer = producer("100")) {
            send(producer, at);
            consumer.assign(Set.of(at));
            int before = read(consumer);
            move(at);
            send(producer, at);
            return List.of(before, read(consumer));
        }
    }

    private static int read(KafkaConsumer<String, String> consumer) {
        long end = System.nanoTime() + WAIT.toNanos();
        int count = 0;
        while (count == 0 && System.nanoTime() < end) {
            count += consumer.poll(Duration.ofMillis(200)).count();
        }
        return count;
    }

    private static long send(KafkaProducer<String, String> producer, TopicPartition at) throws Exception {
        return producer.send(new ProducerRecord<>(at.topic(), at.partition(), "k", "v"))
            .get(WAIT.toMillis() * 2, TimeUnit.MILLISECONDS).offset();
    }

    private KafkaProducer<String, String> producer(String backoffMs) {
        return new KafkaProducer<>(Map.of(
            "bootstrap.servers", bootstrap, "key.serializer", SERIALIZER, "value.serializer", SERIALIZER,
            "request.timeout.ms", "20000", "delivery.timeout.ms", DELIVERY_MS, "retry.backoff.ms", backoffMs,
            "retry.backoff.max.ms", backoffMs, "metadata.max.age.ms", NEVER_MS, "enable.idempotence", "false"));
    }

    private TopicPartition partition(String name) {
        return new TopicPartition(prefix + name, 0);
    }

    /** One step, so that what clients are told of first is what stays. */
    private void move(TopicPartition at) throws Exception {
        admin.electLeaders(ElectionType.PREFERRED, Set.of(at)).partitions().get();
        waitForLeader(at, 1);
    }

    /** Until every broker, asked by itself, knows it. */
    private void waitForLeader(TopicPartition at, int leader) throws Exception {
        for (String address : bootstrap.split(",")) {
            try (Admin one = Admin.create(Map.of("bootstrap.servers", address, "retry.backoff.ms", "100"))) {
                long end = System.nanoTime() + WAIT.toNanos();
                while (leaderAsKnown(one, at) != leader) {
                    if (System.nanoTime() > end) {
                        throw new IllegalStateException(address + " does not know that " + leader + " leads " + at);
                    }
                    Thread.sleep(50);
                }
            }
        }
    }

    private static int leaderAsKnown(Admin one, TopicPartition at) throws Exception {
        try {
            return one.describeTopics(List.of(at.topic())).allTopicNames().get().get(at.topic())
                .partitions().get(0).leader().id();
        } catch (java.util.concurrent.ExecutionException unknown) {
            return -1;
        }
    }
}
