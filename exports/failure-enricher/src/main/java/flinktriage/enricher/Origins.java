package flinktriage.enricher;

import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Determines the origin of a class from its name; by default, a class is user code. */
final class Origins {

    private static final String FLINK = "org.apache.flink.";

    private final Map<String, List<String>> prefixes;
    private final Pattern generated;
    private final Pattern shaded;

    Origins(Map<String, List<String>> prefixes, Pattern generated, Pattern shaded) {
        this.prefixes = Map.copyOf(prefixes);
        this.generated = generated;
        this.shaded = shaded;
    }

    /** Returns jdk, library, connector, flink, or user. Native methods have no separate origin. */
    String of(String className, String file) {
        if (begins(className, "jdk")) {
            return "jdk";
        }
        Matcher relocated = shaded.matcher(className);
        if (relocated.find()) {
            String inner = of(className.substring(relocated.end()), file);
            return inner.equals("user") || inner.equals("flink") ? "library" : inner;
        }
        if (begins(className, "connector")) {
            return "connector";
        }
        if (className.startsWith(FLINK)) {
            return begins(className, "example") ? "user" : "flink";
        }
        if (begins(className, "library")) {
            return "library";
        }
        boolean mayBeGenerated = className.indexOf('.') < 0 && file == null;
        return mayBeGenerated && generated.matcher(className).matches() ? "flink" : "user";
    }

    private boolean begins(String className, String origin) {
        return prefixes.getOrDefault(origin, List.of()).stream().anyMatch(className::startsWith);
    }
}
