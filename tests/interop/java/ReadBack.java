import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads each partition of a topic to its end, one after the other, and prints for each a line
 * `partition=records checksum`, and after these the error that came instead of the next record.
 * The checksum is the CRC-32 of all offsets (8 bytes each) and values.
 *
 * Arguments: bootstrap servers, topic, number of partitions.
 */
public final class ReadBack {
    private static final long PATIENCE_MS = 20_000;

    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0], "enable.auto.commit", "false", "auto.offset.reset", "earliest");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            for (int partition = 0; partition < Integer.parseInt(arguments[2]); partition++) {
                System.out.println(partition + "=" + read(consumer, new TopicPartition(arguments[1], partition)));
            }
        }
    }

    private static String read(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
        List<TopicPartition> one = List.of(partition);
        consumer.assign(one);
        consumer.seekToBeginning(one);
        long end = consumer.endOffsets(one).get(partition);
        CRC32 checksum = new CRC32();
        int count = 0;
        String error = "";
        try {
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (consumer.position(partition) < end && error.isEmpty()) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    checksum.update(ByteBuffer.allocate(8).putLong(record.offset()).array());
                    checksum.update(record.value());
                    count++;
                }
                if (System.currentTimeMillis() > deadline) {
                    error = " stuck at " + consumer.position(partition);
                }
            }
        } catch (Throwable failure) {
            Throwable cause = failure;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            error = (" " + failure + " <- " + cause).replace('\n', ' ');
        }
        return count + " " + checksum.getValue() + error;
    }
}
