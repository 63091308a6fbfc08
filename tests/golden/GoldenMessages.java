import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Writes messages with Kafka's own generated classes.
 *
 * Each line of the first file is a JSON object: "class", "version", and "value", which is null for
 * a message that was only constructed. The same line of the second file is the message in
 * hexadecimal, or an exclamation mark and the reason why Kafka refuses to write it.
 */
public final class GoldenMessages {
    private static final Map<String, Method> READERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        try (BufferedReader asked = Files.newBufferedReader(Path.of(arguments[0]));
                PrintStream answers = new PrintStream(
                        Files.newOutputStream(Path.of(arguments[1])), false, StandardCharsets.UTF_8)) {
            for (String line = asked.readLine(); line != null; line = asked.readLine()) {
                answers.println(answer(mapper.readTree(line)));
            }
        }
    }

    private static String answer(JsonNode asked) throws Exception {
        String name = asked.get("class").asText();
        short version = asked.get("version").shortValue();
        try {
            return HexFormat.of().formatHex(bytes(message(name, version, asked.get("value")), version));
        } catch (InvocationTargetException error) {
            return "!" + error.getCause();
        } catch (RuntimeException error) {
            return "!" + error;
        }
    }

    private static Message message(String name, short version, JsonNode value) throws Exception {
        if (value.isNull()) {
            return (Message) Class.forName(name).getDeclaredConstructor().newInstance();
        }
        Method reader = READERS.get(name);
        if (reader == null) {
            reader = Class.forName(name + "JsonConverter").getMethod("read", JsonNode.class, short.class);
            READERS.put(name, reader);
        }
        return (Message) reader.invoke(null, value, version);
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }
}
