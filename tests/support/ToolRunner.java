import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs one command-line class after the other in this JVM, so that a tool costs no JVM start.
 *
 * Request: one line of base64 words: class, standard input, arguments.
 * Answer: one line of exit code, base64 standard output, base64 standard error.
 */
public final class ToolRunner {
    /** A tool may catch the exception that stops it and exit again: its first code counts. */
    private static Integer firstExitCode;

    private static final class Exited extends RuntimeException {
        Exited() {
            super("exit", null, false, false);
        }
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        InputStream requests = System.in;
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> { });
        BufferedReader reader = new BufferedReader(new InputStreamReader(requests, StandardCharsets.US_ASCII));
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            answers.println(answer(line.split(" ")));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void exit(int code) {
        if (firstExitCode == null) {
            firstExitCode = code;
        }
        throw new Exited();
    }

    private static String answer(String[] words) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(decode(words[1])));
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        String[] arguments = new String[words.length - 2];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = new String(decode(words[i + 2]), StandardCharsets.UTF_8);
        }
        firstExitCode = null;
        int code = run(new String(decode(words[0]), StandardCharsets.UTF_8), arguments);
        System.out.flush();
        System.err.flush();
        return code + " =" + encode(out.toByteArray()) + " =" + encode(err.toByteArray());
    }

    private static int run(String name, String[] arguments) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return firstExitCode == null ? 0 : firstExitCode;
        } catch (InvocationTargetException wrapped) {
            if (firstExitCode != null) {
                return firstExitCode;
            }
            wrapped.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            return 1;
        }
    }

    private static byte[] decode(String word) {
        return Base64.getDecoder().decode(word.substring(1));
    }

    private static String encode(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
