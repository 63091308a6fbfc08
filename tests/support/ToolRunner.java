import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * Runs one command-line class after the other in this JVM, so that a tool costs no JVM start.
 *
 * Request: one line of base64 words: class, standard input, arguments.
 * Answer: one line of exit code, base64 standard output, base64 standard error.
 * An exit is trapped; what a tool registered to run at exit runs when it ends, as in a JVM of its own.
 */
public final class ToolRunner {
    /** A tool may catch the exception that stops it and exit again: its first code counts. */
    private static Integer firstExitCode;

    private static final List<Runnable> SHUTDOWN_HOOKS = new ArrayList<>();
    private static final Redirected OUT = new Redirected();
    private static final Redirected ERR = new Redirected();

    private static final class Exited extends RuntimeException {
        Exited() {
            super("exit", null, false, false);
        }
    }

    /** Installed once, because Scala's Console keeps the first System.out it sees. */
    private static final class Redirected extends OutputStream {
        private ByteArrayOutputStream current = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int b) {
            current.write(b);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int count) {
            current.write(bytes, from, count);
        }

        synchronized byte[] take() {
            byte[] bytes = current.toByteArray();
            current = new ByteArrayOutputStream();
            return bytes;
        }
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        InputStream requests = System.in;
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        trap("setExitProcedure", "Procedure");
        trap("setHaltProcedure", "Procedure");
        trap("setShutdownHookAdder", "ShutdownHookAdder");
        BufferedReader reader = new BufferedReader(new InputStreamReader(requests, StandardCharsets.US_ASCII));
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            answers.println(answer(line.split(" ")));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** By reflection: Exit moved to another package in 4.4.0. */
    private static void trap(String setter, String kind) throws ReflectiveOperationException {
        Class<?> exits = exitClass();
        Class<?> type = Class.forName(exits.getName() + "$" + kind);
        Object trap = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
            if (arguments[0] instanceof Integer code) {
                exit(code);
            }
            SHUTDOWN_HOOKS.add((Runnable) arguments[1]);
            return null;
        });
        exits.getMethod(setter, type).invoke(null, trap);
    }

    private static Class<?> exitClass() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException before44) {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        }
    }

    private static void exit(int code) {
        if (firstExitCode == null) {
            firstExitCode = code;
        }
        throw new Exited();
    }

    private static String answer(String[] words) {
        System.setIn(new ByteArrayInputStream(decode(words[1])));
        String[] arguments = new String[words.length - 2];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = new String(decode(words[i + 2]), StandardCharsets.UTF_8);
        }
        firstExitCode = null;
        SHUTDOWN_HOOKS.clear();
        int code = run(new String(decode(words[0]), StandardCharsets.UTF_8), arguments);
        for (Runnable hook : new ArrayList<>(SHUTDOWN_HOOKS)) {
            hook.run();
        }
        System.out.flush();
        System.err.flush();
        return code + " =" + encode(OUT.take()) + " =" + encode(ERR.take());
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
