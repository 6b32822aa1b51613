package flinktriage.proof;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.kubernetes.operator.api.FlinkDeployment;
import org.apache.flink.kubernetes.operator.config.FlinkOperatorConfiguration;
import org.apache.flink.kubernetes.operator.utils.FlinkResourceExceptionUtils;

/**
 * Arguments: a folder with the operator's configuration, a file of messages (one a line, with
 * {@code \n} for a line end), two files to write.
 *
 * <p>The operator's own code reads its option and labels an exception for each message; the first
 * file gets the option's entries ({@code regex TAB label}), the second the status of each resource.
 */
public final class LabelMapperProof {

    public static void main(String[] arguments) throws Exception {
        FlinkOperatorConfiguration configuration =
                FlinkOperatorConfiguration.fromConfiguration(
                        GlobalConfiguration.loadConfiguration(arguments[0]));
        try (PrintStream out = new PrintStream(arguments[2], StandardCharsets.UTF_8)) {
            for (Map.Entry<String, String> entry :
                    configuration.getExceptionLabelMapper().entrySet()) {
                out.print(entry.getKey() + "\t" + entry.getValue() + "\n");
            }
        }
        try (PrintStream out = new PrintStream(arguments[3], StandardCharsets.UTF_8)) {
            for (String line : Files.readAllLines(Path.of(arguments[1]))) {
                FlinkDeployment resource = new FlinkDeployment();
                Exception failure = new Exception("outer", new Exception(line.replace("\\n", "\n")));
                FlinkResourceExceptionUtils.updateFlinkResourceException(
                        failure, resource, configuration);
                out.print(resource.getStatus().getError() + "\n");
            }
        }
    }

    private LabelMapperProof() {}
}
