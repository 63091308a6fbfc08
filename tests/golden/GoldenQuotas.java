import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/** Apache Kafka's rates and token buckets, fed line by line; see java_quotas.py. */
public final class GoldenQuotas {
    private static MetricConfig span;
    private static Rate rate;
    private static TokenBucket bucket;

    public static void main(String[] arguments) throws Exception {
        List<String> answers = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split(" ");
            if (words[0].equals("span")) {
                span = new MetricConfig()
                    .samples(Integer.parseInt(words[1]))
                    .timeWindow(Long.parseLong(words[2]), TimeUnit.MILLISECONDS);
                rate = new Rate();
                bucket = new TokenBucket();
            } else {
                double amount = Double.parseDouble(words[1]);
                double limit = Double.parseDouble(words[2]);
                answers.add(answer(words[0], amount, limit, Long.parseLong(words[3])));
            }
        }
        Files.write(Path.of(arguments[1]), answers);
    }

    private static String answer(String kind, double amount, double limit, long now) {
        span.quota(new Quota(limit, true));
        if (kind.equals("rate")) {
            rate.record(span, amount, now);
            double value = rate.measure(span, now);
            long elapsed = rate.windowSize(span, now);
            long rest = value <= limit ? 0 : Math.round((value - limit) / limit * elapsed);
            return value + " " + elapsed + " " + rest;
        }
        bucket.record(span, amount, now);
        double tokens = bucket.measure(span, now);
        return tokens + " 0 " + (tokens < 0 ? Math.round(-tokens / limit * 1000) : 0);
    }
}
