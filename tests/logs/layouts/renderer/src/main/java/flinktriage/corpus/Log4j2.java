package flinktriage.corpus;

import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.ThreadContext;

/** Logs the failures with Log4j 2. -Dlog4j2.configurationFile specifies the configuration. */
public final class Log4j2 {
    public static void main(String[] args) {
        ThreadContext.put("flink-job-id", "d1dfe4260f6b4a9c8e7d6c5b4a392817");
        ThreadContext.put("tenant", "acme");
        Logger logger = LogManager.getLogger("org.apache.flink.runtime.taskmanager.Task");
        logger.info("Starting the corpus");
        for (Map.Entry<String, Throwable> failure : Failures.all().entrySet()) {
            logger.warn("It failed with " + failure.getKey(), failure.getValue());
            logger.info("Something else happened");
        }
        LogManager.shutdown();
    }
}
