import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;

/**
 * Reads strings as Apache Kafka reads those of requests. A line of the first file is the bytes of one, in hexadecimal
 * digits; it becomes a line of the second one: the same of the UTF-8 of the text.
 */
public final class GoldenText {
    public static void main(String[] arguments) throws Exception {
        List<String> answers = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            byte[] content = HexFormat.of().parseHex(line);
            String text = new ByteBufferAccessor(ByteBuffer.wrap(content)).readString(content.length);
            answers.add(HexFormat.of().formatHex(text.getBytes(java.nio.charset.StandardCharsets.UTF_8)));
        }
        Files.write(Path.of(arguments[1]), answers);
    }
}
