package flinktriage.proof;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.client.deployment.StandaloneClusterId;
import org.apache.flink.client.program.rest.RestClusterClient;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.configuration.JobManagerOptions;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.plugin.PluginManager;
import org.apache.flink.core.plugin.PluginUtils;
import org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.runtime.taskexecutor.TaskExecutorResourceUtils;
import org.apache.flink.runtime.taskexecutor.TaskManagerRunner;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Arguments: a folder with Flink's configuration, a folder for results.
 *
 * <p>Writes the entries of {@code kubernetes.operator.exception.label.mapper}, as parsed by Flink,
 * to {@code labels.tsv}. Starts a JobManager and a TaskManager in one JVM, runs a job for every
 * failure, and writes the response of {@code GET /jobs/:id/exceptions} to {@code <failure>.json}.
 * A MiniCluster is not suitable, because its dispatcher has no failure enrichers.
 */
public final class ClusterProof {

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = GlobalConfiguration.loadConfiguration(arguments[0]);
        Path results = Files.createDirectories(Path.of(arguments[1]));
        writeLabels(configuration, results.resolve("labels.tsv"));
        PluginManager plugins = PluginUtils.createPluginManagerFromRootFolder(configuration);
        FileSystem.initialize(configuration, plugins);

        StandaloneSessionClusterEntrypoint jobManager =
                new StandaloneSessionClusterEntrypoint(configuration);
        jobManager.startCluster();
        configuration.set(JobManagerOptions.PORT, jobManager.getRpcPort());
        configuration.set(RestOptions.PORT, jobManager.getRestPort());
        Configuration local =
                TaskExecutorResourceUtils.adjustForLocalExecution(new Configuration(configuration));
        TaskManagerRunner taskManager =
                new TaskManagerRunner(
                        local, plugins, TaskManagerRunner::createTaskExecutorService);
        taskManager.start();

        try (RestClusterClient<StandaloneClusterId> client =
                new RestClusterClient<>(configuration, StandaloneClusterId.getInstance())) {
            String rest = "http://localhost:" + jobManager.getRestPort();
            for (String name : Failures.BY_NAME.keySet()) {
                run(client, rest, results.resolve(name + ".json"), job(new Throwing(name), 0));
            }
            run(client, rest, results.resolve("null-in-user-code.json"), job(new NullOrder(), 0));
            run(
                    client,
                    rest,
                    results.resolve("checkpoint-disk-full.json"),
                    job(new FullDisk(), 50));
        }
        // All results have been written, so an orderly shutdown is not required.
        Runtime.getRuntime().halt(0);
    }

    /** Writes the entries of the operator's option, whose type is a map of strings. */
    private static void writeLabels(Configuration configuration, Path file) throws IOException {
        ConfigOption<Map<String, String>> option =
                ConfigOptions.key("kubernetes.operator.exception.label.mapper")
                        .mapType()
                        .defaultValue(Map.of());
        StringBuilder lines = new StringBuilder();
        configuration
                .get(option)
                .forEach((regex, label) -> lines.append(regex + "\t" + label + "\n"));
        Files.writeString(file, lines);
    }

    private static StreamExecutionEnvironment job(
            MapFunction<Long, Long> function, long checkpointMillis) {
        Configuration configuration = new Configuration();
        // Flink records the first failure unchanged, and the second as the cause of a JobException.
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 1);
        configuration.set(
                RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(200));
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.setParallelism(1);
        if (checkpointMillis > 0) {
            environment.enableCheckpointing(checkpointMillis);
            environment.getCheckpointConfig().setTolerableCheckpointFailureNumber(0);
        }
        environment
                .fromSequence(0, checkpointMillis > 0 ? Long.MAX_VALUE - 1 : 10)
                .map(function)
                .sinkTo(new DiscardingSink<>());
        return environment;
    }

    private static void run(
            RestClusterClient<StandaloneClusterId> client,
            String rest,
            Path result,
            StreamExecutionEnvironment job)
            throws Exception {
        JobID id = client.submitJob(job.getStreamGraph().getJobGraph()).get();
        if (client.requestJobResult(id).get().isSuccess()) {
            throw new IllegalStateException(result + ": the job did not fail");
        }
        Files.writeString(result, get(rest + "/jobs/" + id + "/exceptions"));
    }

    private static String get(String address) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(address)).timeout(Duration.ofSeconds(20)).build();
        return HttpClient.newHttpClient()
                .send(request, HttpResponse.BodyHandlers.ofString())
                .body();
    }

    private static final class Throwing implements MapFunction<Long, Long> {
        private final String name;

        Throwing(String name) {
            this.name = name;
        }

        @Override
        public Long map(Long value) throws Exception {
            throw Failures.BY_NAME.get(name).call();
        }
    }

    private static final class NullOrder implements MapFunction<Long, Long> {
        @Override
        public Long map(Long value) {
            Object order = value < 0 ? value : null;
            return (long) order.hashCode();
        }
    }

    /** A function whose snapshots fail, so that the JobManager fails the job. */
    private static final class FullDisk implements MapFunction<Long, Long>, CheckpointedFunction {
        @Override
        public Long map(Long value) throws Exception {
            Thread.sleep(1);
            return value;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            throw new IOException("No space left on device");
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {}
    }

    private ClusterProof() {}
}
