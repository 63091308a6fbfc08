import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Says what patterns match, as ListTransactions has it matched. A line of the first file is a pattern and texts, apart
 * by tabs; it becomes a line of the second one: 0 or 1 for each text, or why the pattern is refused behind "!".
 */
public final class GoldenPatterns {
    public static void main(String[] arguments) throws Exception {
        List<String> answers = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            answers.add(answer(line.split("\t", -1)));
        }
        Files.write(Path.of(arguments[1]), answers);
    }

    private static String answer(String[] fields) {
        try {
            Pattern pattern = Pattern.compile(fields[0]);
            StringBuilder matches = new StringBuilder();
            for (int i = 1; i < fields.length; i++) {
                matches.append(pattern.matcher(fields[i]).matches() ? '1' : '0');
            }
            return matches.toString();
        } catch (PatternSyntaxException refused) {
            return "!" + refused.getMessage();
        }
    }
}
