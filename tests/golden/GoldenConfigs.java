import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Apache Kafka's configuration keys, and whether it takes a text for one; see java_configs.py. */
public final class GoldenConfigs {
    private static final Map<String, ConfigDef> KEYS = Map.of(
        "broker", AbstractKafkaConfig.CONFIG_DEF,
        "topic", LogConfig.configDefCopy(),
        "group", GroupConfig.CONFIG_DEF,
        "client metrics", ClientMetricsConfigs.configDef());
    private static final KafkaConfig DEFAULTS = broker(Map.of());

    public static void main(String[] arguments) throws Exception {
        List<String> answers = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split("\t", -1);
            if (words.length == 1) {
                KEYS.get(words[0]).configKeys().values().forEach(key -> answers.add(shown(key)));
            } else {
                answers.add(complaint(words[0], Map.of(words[1], words[2])));
            }
        }
        Files.write(Path.of(arguments[1]), answers);
    }

    private static String shown(ConfigKey key) {
        String bounds = key.validator == null ? "" : key.validator.toString();
        return key.name + "\t" + key.type + "\t" + bounds;
    }

    /** Why a value is refused; empty if it is not. */
    private static String complaint(String kind, Map<String, String> values) {
        try {
            check(kind, values);
            return "";
        } catch (RuntimeException refused) {
            return String.valueOf(refused.getMessage()).replace('\n', ' ');
        }
    }

    private static void check(String kind, Map<String, String> values) {
        switch (kind) {
            case "broker" -> new LogConfig(broker(values).extractLogConfigMap());
            case "topic" ->
                LogConfig.validate(Map.of(), values, DEFAULTS.extractLogConfigMap(), false);
            case "group" -> GroupConfig.validate(
                values, DEFAULTS.groupCoordinatorConfig(), DEFAULTS.shareGroupConfig());
            default -> ClientMetricsConfigs.validate("m", values);
        }
    }

    private static KafkaConfig broker(Map<String, String> values) {
        Properties properties = new Properties();
        properties.putAll(Map.of(
            "process.roles", "broker",
            "node.id", "0",
            "controller.listener.names", "CONTROLLER",
            "controller.quorum.bootstrap.servers", "localhost:9093"));
        properties.putAll(values);
        return KafkaConfig.fromProps(properties, false);
    }
}
