import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Share consumers beside each other that accept each record, as fast as it goes, until so many are accepted.
 *
 * Arguments: bootstrap servers, topic (and group), records in all, consumers, acknowledgement mode.
 * It ends with a line of records and records per second, from the first record until the last commit.
 */
public final class ShareLoad {
    private static final long SILENCE_MS = 60_000;
    private static final AtomicLong firstAt = new AtomicLong();
    private static final AtomicLong records = new AtomicLong();
    private static final AtomicLong bytes = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        long wanted = Long.parseLong(arguments[2]);
        int consumers = Integer.parseInt(arguments[3]);
        ExecutorService threads = Executors.newFixedThreadPool(consumers);
        List<Future<Void>> running = new ArrayList<>();
        for (int i = 0; i < consumers; i++) {
            running.add(threads.submit((Callable<Void>) () -> consume(arguments[0], arguments[1], wanted, arguments[4])));
        }
        for (Future<Void> one : running) {
            one.get();
        }
        double seconds = (System.nanoTime() - firstAt.get()) / 1e9;
        double megabytes = bytes.get() / (1024.0 * 1024.0);
        System.out.printf("%d records read, %f records/sec (%.2f MB/sec)%n", records.get(), records.get() / seconds, megabytes / seconds);
        Runtime.getRuntime().halt(0);
    }

    private static Void consume(String bootstrap, String topic, long wanted, String mode) {
        Map<String, Object> properties = Map.of("bootstrap.servers", bootstrap, "group.id", topic, "share.acknowledgement.mode", mode);
        boolean isExplicit = mode.equals("explicit");
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            long heardAt = System.currentTimeMillis();
            while (records.get() < wanted) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
                if (polled.isEmpty()) {
                    if (System.currentTimeMillis() - heardAt > SILENCE_MS) {
                        throw new IllegalStateException("no more records come");
                    }
                    continue;
                }
                heardAt = System.currentTimeMillis();
                firstAt.compareAndSet(0, System.nanoTime());
                long read = 0;
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    read += record.value().length;
                    if (isExplicit) {
                        consumer.acknowledge(record);
                    }
                }
                if (isExplicit) {
                    consumer.commitAsync();
                }
                bytes.addAndGet(read);
                records.addAndGet(polled.count());
            }
            for (Map.Entry<TopicIdPartition, Optional<KafkaException>> each : consumer.commitSync().entrySet()) {
                if (each.getValue().isPresent()) {
                    throw each.getValue().get();
                }
            }
        }
        return null;
    }
}
