package flinktriage.corpus;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import org.apache.flink.util.SerializedThrowable;

/** Throwables of the kinds that Flink logs. The keys describe their special features. */
final class Failures {
    interface Step { void run() throws Exception; }

    static Map<String, Throwable> all() {
        Map<String, Throwable> failures = new LinkedHashMap<>();
        failures.put("one throwable", caught(() -> { throw new IllegalStateException("The TaskExecutor is shutting down."); }));
        failures.put("a chain of three", caught(Failures::checkpoint));
        failures.put("no message", caught(() -> { throw new RuntimeException(null, caught(() -> { throw new NullPointerException(); })); }));
        failures.put("a message of three lines", caught(() -> {
            throw new IllegalArgumentException("Could not find any factory for identifier 'kafka'.\n\nAvailable factory identifiers are:\n\nblackhole\ndatagen");
        }));
        failures.put("suppressed", suppressed());
        failures.put("circular", circular());
        failures.put("a lambda", caught(() -> {
            Runnable work = () -> { throw new ArithmeticException("/ by zero"); };
            work.run();
        }));
        failures.put("serialized", new RuntimeException("Recovery is suppressed by NoRestartBackoffTimeStrategy",
            new SerializedThrowable(caught(Failures::checkpoint))));
        failures.put("a message with a colon and brackets", caught(() -> {
            throw new CompletionException("pekko.tcp://flink@10.0.0.7:6123/user/rpc [a: b] (c)", caught(() -> { throw new IOException("Bad table magic number: expected 9863518390377041911, found 1"); }));
        }));
        return failures;
    }

    private static void checkpoint() throws Exception {
        try {
            write();
        } catch (IOException e) {
            throw new Exception("Could not materialize checkpoint 5 for operator Customer Totals (1/2)#0.", e);
        }
    }

    private static void write() throws IOException {
        try {
            throw new java.io.FileNotFoundException("/mnt/ckpt/chk-5/_metadata (No space left on device)");
        } catch (java.io.FileNotFoundException e) {
            throw new IOException("Could not flush to file and close the stream", e);
        }
    }

    private static Throwable suppressed() {
        return caught(() -> {
            IOException first = new IOException("first close failed");
            first.addSuppressed(new IllegalStateException("second close failed", new RuntimeException("why the second failed")));
            throw new Exception("Could not close resource.", first);
        });
    }

    private static Throwable circular() {
        RuntimeException a = new RuntimeException("a fails for b");
        RuntimeException b = new RuntimeException("b fails for a");
        a.initCause(b);
        b.initCause(a);
        return a;
    }

    private static Throwable caught(Step step) {
        try {
            step.run();
            throw new AssertionError("nothing was thrown");
        } catch (Exception e) {
            return e;
        }
    }

    private Failures() {}
}
