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
 * Arguments: the folder with the operator's configuration, a file with one message per line (line
 * breaks are written as {@code \n}), and two output files.
 *
 * <p>The operator's own code reads the option and labels one exception per message. The first output
 * file contains the entries of the option ({@code regex TAB label}), and the second contains the
 * status of each resource.
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
