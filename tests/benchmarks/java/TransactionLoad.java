import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Producers beside each other that commit after every so many records, as fast as it goes.
 *
 * Arguments: bootstrap servers, topic, records in all, bytes of each, records per transaction, producers.
 * It ends with the line that ProducerPerformance ends with; starting and initialising are not counted.
 */
public final class TransactionLoad {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int producers = Integer.parseInt(arguments[5]);
        int share = Integer.parseInt(arguments[2]) / producers;
        byte[] value = new byte[Integer.parseInt(arguments[3])];
        int perTransaction = Integer.parseInt(arguments[4]);
        List<KafkaProducer<byte[], byte[]>> ready = new ArrayList<>();
        for (int i = 0; i < producers; i++) {
            KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", arguments[0], "transactional.id", topic + "-" + i),
                new ByteArraySerializer(),
                new ByteArraySerializer());
            producer.initTransactions();
            producer.partitionsFor(topic);
            ready.add(producer);
        }
        ExecutorService threads = Executors.newFixedThreadPool(producers);
        List<Future<Integer>> running = new ArrayList<>();
        long begin = System.nanoTime();
        for (KafkaProducer<byte[], byte[]> producer : ready) {
            running.add(threads.submit((Callable<Integer>) () -> produce(producer, topic, value, share, perTransaction)));
        }
        int sent = 0;
        for (Future<Integer> one : running) {
            sent += one.get();
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        double megabytes = (double) sent * value.length / (1024 * 1024);
        System.out.printf("%d records sent, %f records/sec (%.2f MB/sec)%n", sent, sent / seconds, megabytes / seconds);
        Runtime.getRuntime().halt(0);
    }

    private static int produce(
            KafkaProducer<byte[], byte[]> producer, String topic, byte[] value, int records, int perTransaction) {
        for (int sent = 0; sent < records; ) {
            producer.beginTransaction();
            for (int i = 0; i < perTransaction && sent < records; i++, sent++) {
                producer.send(new ProducerRecord<>(topic, value));
            }
            producer.commitTransaction();
        }
        return records;
    }
}
