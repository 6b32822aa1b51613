package flinktriage.corpus;

import java.util.Map;
import org.apache.log4j.FileAppender;
import org.apache.log4j.Logger;
import org.apache.log4j.PatternLayout;

/** Logs the failures with Log4j 1. Arguments: pairs of an output file and a pattern. */
public final class Log4j1 {
    public static void main(String[] args) throws Exception {
        Logger logger = Logger.getLogger("org.apache.flink.runtime.taskmanager.Task");
        logger.setAdditivity(false);
        for (int i = 0; i < args.length; i += 2) {
            logger.removeAllAppenders();
            logger.addAppender(new FileAppender(new PatternLayout(args[i + 1]), args[i], false));
            logger.info("Starting the corpus");
            for (Map.Entry<String, Throwable> failure : Failures.all().entrySet()) {
                logger.warn("It failed with " + failure.getKey(), failure.getValue());
                logger.info("Something else happened");
            }
        }
    }
}
