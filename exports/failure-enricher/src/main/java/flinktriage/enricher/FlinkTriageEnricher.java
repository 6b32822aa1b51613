package flinktriage.enricher;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.core.failure.FailureEnricher;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Labels a failure with the best matching signature. A failure without a matching signature is not
 * labeled.
 *
 * <p>Runs on the IO executor, so that the main thread of the JobMaster is not blocked. Exceptions
 * are logged and do not affect the job.
 */
public final class FlinkTriageEnricher implements FailureEnricher {

    public static final String SIGNATURE = "flink-triage.signature";
    public static final String SEVERITY = "flink-triage.severity";
    public static final String ROLE = "flink-triage.role";

    private static final Logger LOG = LoggerFactory.getLogger(FlinkTriageEnricher.class);
    private static final Set<String> KEYS = Set.of(SIGNATURE, SEVERITY, ROLE);

    private final RuleMatcher matcher;

    public FlinkTriageEnricher(RuleMatcher matcher) {
        this.matcher = matcher;
    }

    @Override
    public Set<String> getOutputKeys() {
        return KEYS;
    }

    @Override
    public CompletableFuture<Map<String, String>> processFailure(Throwable cause, Context context) {
        try {
            return CompletableFuture.supplyAsync(() -> labels(cause), context.getIOExecutor());
        } catch (RuntimeException refused) {
            // The executor rejects tasks if it is shut down.
            return CompletableFuture.completedFuture(Map.of());
        }
    }

    /** The three labels of the best match, or none. */
    Map<String, String> labels(Throwable cause) {
        try {
            return matcher.match(Failure.of(cause)).stream()
                    .findFirst()
                    .map(match -> match.signature)
                    .map(s -> Map.of(SIGNATURE, s.id, SEVERITY, s.severity, ROLE, s.role))
                    .orElse(Map.of());
        } catch (Throwable problem) {
            // A throwable whose methods fail must not affect the job.
            LOG.warn("A failure could not be labelled", problem);
            return Map.of();
        }
    }
}
