import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One producer with acks=all and idempotence, at a steady rate until its standard input ends.
 *
 * Arguments: bootstrap servers, topic, partitions, a name, records a second. Each acknowledged record is
 * a line `partition offset value`; what fails is a line `failed` and why. At the end it waits for all
 * that is under way, and prints `done` and how many were sent.
 */
public final class SteadyLoad {
    private static final int TURNS_A_SECOND = 50;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        String name = arguments[3];
        int perTurn = Math.max(1, Integer.parseInt(arguments[4]) / TURNS_A_SECOND);
        Thread reader = new Thread(SteadyLoad::readToTheEnd);
        reader.start();
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "acks", "all",
            "enable.idempotence", true,
            "linger.ms", 1,
            "delivery.timeout.ms", 120_000,
            "request.timeout.ms", 5_000,
            "reconnect.backoff.max.ms", 200,
            "retry.backoff.ms", 50);
        long number = 0;
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            while (reader.isAlive()) {
                for (int i = 0; i < perTurn; i++, number++) {
                    String value = String.format("%s:%08d", name, number);
                    int partition = (int) (number % partitions);
                    producer.send(new ProducerRecord<>(topic, partition, null, value), (at, error) ->
                        say(error == null ? at.partition() + " " + at.offset() + " " + value : "failed " + error));
                }
                Thread.sleep(1000 / TURNS_A_SECOND);
            }
        }
        say("done " + number);
    }

    private static void readToTheEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException ended) {
            return;
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
