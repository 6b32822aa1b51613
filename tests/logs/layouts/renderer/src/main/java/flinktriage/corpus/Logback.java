package flinktriage.corpus;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.joran.JoranConfigurator;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/** Logs the failures with Logback. Argument: the configuration file. */
public final class Logback {
    public static void main(String[] args) throws Exception {
        LoggerContext context = (LoggerContext) LoggerFactory.getILoggerFactory();
        context.reset();
        JoranConfigurator configurator = new JoranConfigurator();
        configurator.setContext(context);
        configurator.doConfigure(args[0]);
        MDC.put("flink-job-id", "d1dfe4260f6b4a9c8e7d6c5b4a392817");
        Logger logger = LoggerFactory.getLogger("org.apache.flink.runtime.taskmanager.Task");
        logger.info("Starting the corpus");
        for (Map.Entry<String, Throwable> failure : Failures.all().entrySet()) {
            logger.warn("It failed with " + failure.getKey(), failure.getValue());
            logger.info("Something else happened");
        }
        context.stop();
    }
}
