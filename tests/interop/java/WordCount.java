import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams' word count, exactly once: lines of words in, each word's count out whenever it grows.
 *
 * It repartitions by word and keeps the counts in a store with a changelog. It runs until it is ended.
 * Its own topics have as many replicas as the broker gives them by default.
 * Arguments: bootstrap servers, application id, directory for state, input topic, output topic, the
 * group protocol, and how many threads there are.
 */
public final class WordCount {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "50");
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, arguments[5]);
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[6]);
        if (arguments[5].equals("classic")) {
            properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), "1000");
            properties.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), "300");
        }
        properties.put("reconnect.backoff.max.ms", "200");
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[3])
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(arguments[4], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        CountDownLatch ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR) {
                ended.countDown();
            }
        });
        streams.start();
        ended.await();
        streams.close(Duration.ofSeconds(1));
        Runtime.getRuntime().halt(1);
    }
}
