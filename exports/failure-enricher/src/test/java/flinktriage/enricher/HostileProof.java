package flinktriage.enricher;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;
import org.apache.flink.configuration.Configuration;

/**
 * Labels throwables that are difficult to process, each in four threads at the same time.
 *
 * <p>Argument: a file of rules. Prints {@code name TAB signature TAB milliseconds} per throwable.
 */
public final class HostileProof {

    public static void main(String[] arguments) throws Exception {
        Map<String, Supplier<Throwable>> throwables = new LinkedHashMap<>();
        throwables.put("none at all", () -> null);
        throwables.put("its own cause", HostileProof::circular);
        throwables.put("a message that throws", Unspeakable::new);
        throwables.put("a long chain", HostileProof::longChain);
        throwables.put("deeply suppressed", HostileProof::deeplySuppressed);
        throwables.put("16 MB of text", () -> new Exception("No space ".repeat(2_000_000)));
        throwables.put("a regex that never ends", () -> new Exception("a".repeat(8000)));
        throwables.put("found behind all that", () -> new Exception(last(longChain(), "lost it")));

        FlinkTriageEnricher enricher = enricher(arguments[0]);
        ExecutorService threads = Executors.newFixedThreadPool(4);
        for (Map.Entry<String, Supplier<Throwable>> entry : throwables.entrySet()) {
            Throwable throwable = entry.getValue().get();
            long start = System.nanoTime();
            List<CompletableFuture<Map<String, String>>> running = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                running.add(
                        CompletableFuture.supplyAsync(() -> enricher.labels(throwable), threads));
            }
            Map<String, String> labels = running.get(0).get();
            for (CompletableFuture<Map<String, String>> other : running) {
                if (!other.get().equals(labels)) {
                    throw new IllegalStateException(entry.getKey() + ": threads disagree");
                }
            }
            long millis = (System.nanoTime() - start) / 1_000_000;
            print(entry.getKey(), labels, millis);
        }
        threads.shutdown();
        print("no such rules", enricher("/no/such/file").labels(new Exception("lost it")), 0);
    }

    private static void print(String name, Map<String, String> labels, long millis) {
        String signature = labels.getOrDefault(FlinkTriageEnricher.SIGNATURE, "");
        System.out.println(name + "\t" + signature + "\t" + millis);
    }

    private static FlinkTriageEnricher enricher(String rules) {
        Configuration configuration = new Configuration();
        configuration.set(FlinkTriageEnricherFactory.RULES, rules);
        return (FlinkTriageEnricher)
                new FlinkTriageEnricherFactory().createFailureEnricher(configuration);
    }

    private static Throwable circular() {
        Exception first = new Exception("first");
        Exception second = new Exception("second", first);
        first.initCause(second);
        first.addSuppressed(second);
        return first;
    }

    private static Throwable longChain() {
        Throwable chain = new Exception("innermost");
        for (int i = 0; i < 100_000; i++) {
            chain = new Exception("wrapper " + i, chain);
        }
        return chain;
    }

    private static Throwable last(Throwable suppressed, String message) {
        Throwable throwable = new Exception(message);
        throwable.addSuppressed(suppressed);
        return throwable;
    }

    private static Throwable deeplySuppressed() {
        Throwable outer = new Exception("innermost");
        for (int i = 0; i < 100_000; i++) {
            outer = last(outer, "suppresses " + i);
        }
        return outer;
    }

    private static final class Unspeakable extends RuntimeException {
        @Override
        public String getMessage() {
            throw new IllegalStateException("no");
        }

        @Override
        public synchronized Throwable getCause() {
            throw new IllegalStateException("no");
        }

        @Override
        public StackTraceElement[] getStackTrace() {
            return null;
        }
    }

    private HostileProof() {}
}
