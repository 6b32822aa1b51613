package flinktriage.enricher;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.failure.FailureEnricher;
import org.apache.flink.core.failure.FailureEnricherFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates the failure enricher, which {@code jobmanager.failure-enrichers} enables.
 *
 * <p>If the rules cannot be read, the JobManager still starts. The problem is logged, and failures
 * are not labeled.
 */
public final class FlinkTriageEnricherFactory implements FailureEnricherFactory {

    /** The path of a file on the JobManager that replaces the rules in the JAR. */
    public static final ConfigOption<String> RULES =
            ConfigOptions.key("flink-triage.failure-enricher.rules")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("Path of the exported rules; those in the jar when not set.");

    static final String RESOURCE = "/flink-triage-rules.tsv";

    private static final Logger LOG = LoggerFactory.getLogger(FlinkTriageEnricherFactory.class);

    @Override
    public FailureEnricher createFailureEnricher(Configuration configuration) {
        String path = configuration.get(RULES);
        String place = path == null ? "the jar (" + RESOURCE + ")" : path;
        try (InputStream stream = open(path)) {
            Rules rules = Rules.read(stream);
            RuleMatcher matcher = new RuleMatcher(rules);
            matcher.warmUp();
            LOG.info("{} flink-triage rules from {}, pack {}", rules.size(), place, rules.digest());
            return new FlinkTriageEnricher(matcher);
        } catch (IOException | RuntimeException problem) {
            LOG.error("No failure is labelled: no flink-triage rules in {}", place, problem);
            return new FlinkTriageEnricher(new RuleMatcher(Rules.NONE));
        }
    }

    private static InputStream open(String path) throws IOException {
        if (path != null) {
            return Files.newInputStream(Path.of(path));
        }
        InputStream stream = FlinkTriageEnricherFactory.class.getResourceAsStream(RESOURCE);
        if (stream == null) {
            throw new IOException("the jar was built without rules; export them first");
        }
        return stream;
    }
}
