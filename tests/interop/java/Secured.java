import java.io.FileInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A client that gets in by each of several ways: makes a topic, writes, reads in a group, commits.
 *
 * Arguments: a prefix for topics and groups, then property files. For each a line `name=value`: the
 * file's name without its directory, and what was read, or the simple name of the error's class.
 */
public final class Secured {
    private static final int COUNT = 20;
    private static final long PATIENCE_MS = 120_000L;
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer";

    private Secured() { }

    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            String name = arguments[i].substring(arguments[i].lastIndexOf('/') + 1);
            Properties properties = new Properties();
            try (FileInputStream file = new FileInputStream(arguments[i])) {
                properties.load(file);
            }
            System.out.println(name + "=" + outcome(arguments[0] + i, properties));
        }
        System.exit(0);
    }

    private static String outcome(String topic, Properties properties) {
        try {
            properties.putIfAbsent("default.api.timeout.ms", "60000");
            properties.putIfAbsent("max.block.ms", "60000");
            create(topic, properties);
            write(topic, properties);
            return read(topic, properties) + " records";
        } catch (Exception problem) {
            Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
            System.err.println(topic + ": " + cause);
            return cause.getClass().getSimpleName();
        }
    }

    private static void create(String topic, Properties properties) throws Exception {
        try (Admin admin = Admin.create(properties)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
    }

    private static void write(String topic, Properties properties) throws Exception {
        Properties own = new Properties();
        own.putAll(properties);
        own.put("key.serializer", SERIALIZER);
        own.put("value.serializer", SERIALIZER);
        own.put("acks", "all");
        own.put("enable.idempotence", "true");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(own)) {
            for (int i = 0; i < COUNT; i++) {
                producer.send(new ProducerRecord<>(topic, "key-" + i, "value-" + i)).get();
            }
        }
    }

    private static int read(String topic, Properties properties) {
        Properties own = new Properties();
        own.putAll(properties);
        own.put("key.deserializer", DESERIALIZER);
        own.put("value.deserializer", DESERIALIZER);
        own.put("group.id", topic);
        own.put("auto.offset.reset", "earliest");
        own.put("enable.auto.commit", "false");
        int found = 0;
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(own)) {
            consumer.subscribe(List.of(topic));
            while (found < COUNT && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    if (record.value().equals("value-" + found)) {
                        found++;
                    }
                }
            }
            consumer.commitSync();
        }
        return found;
    }
}
