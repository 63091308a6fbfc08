import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Sends records with delays, two of them in transactions, and prints in which order they were read
 * and how many of them came before their time.
 *
 * Arguments: bootstrap servers, a topic with delays and one partition.
 */
public final class Delays {
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer";
    private static final int EXPECTED = 4;
    private static final long PATIENCE_MS = 120_000L;

    private Delays() {
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        Map<String, Object> keys = new HashMap<>();
        keys.put("bootstrap.servers", bootstrap);
        keys.put("key.serializer", SERIALIZER);
        keys.put("value.serializer", SERIALIZER);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(keys)) {
            producer.send(delayed(topic, "first", 1500));
            producer.send(delayed(topic, "second", 1000)).get();
            producer.send(delayed(topic, "third", 300)).get();
        }
        keys.put("transactional.id", topic);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(keys)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(delayed(topic, "aborted", 100)).get();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(delayed(topic, "committed", 3000)).get();
            producer.commitTransaction();
        }
        read(bootstrap, topic);
    }

    private static void read(String bootstrap, String topic) {
        Map<String, Object> keys = new HashMap<>();
        keys.put("bootstrap.servers", bootstrap);
        keys.put("key.deserializer", DESERIALIZER);
        keys.put("value.deserializer", DESERIALIZER);
        keys.put("isolation.level", "read_committed");
        keys.put("enable.auto.commit", "false");
        List<String> values = new ArrayList<>();
        int early = 0;
        long end = System.currentTimeMillis() + PATIENCE_MS;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(keys)) {
            TopicPartition at = new TopicPartition(topic, 0);
            consumer.assign(List.of(at));
            consumer.seekToBeginning(List.of(at));
            while (values.size() < EXPECTED && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.add(record.value());
                    early += record.timestamp() > System.currentTimeMillis() ? 1 : 0;
                }
            }
        }
        System.out.println("read=" + String.join(",", values));
        System.out.println("early=" + early);
    }

    private static ProducerRecord<String, String> delayed(String topic, String value, long delayMs) {
        ProducerRecord<String, String> record = new ProducerRecord<>(topic, "key", value);
        record.headers().add("deliver-after", Long.toString(delayMs).getBytes());
        return record;
    }
}
