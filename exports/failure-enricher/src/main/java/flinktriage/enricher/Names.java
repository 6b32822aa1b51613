package flinktriage.enricher;

import java.util.List;

/** Compares the names of classes and frames with those in a rule. */
final class Names {

    private static final String AKKA = "akka.";
    private static final String PEKKO = "org.apache.pekko.";

    private Names() {}

    /** Whether the names are equal, or the given one is relocated or has no package. */
    static boolean isType(String given, String asked) {
        String name = canonical(given);
        String wanted = canonical(asked);
        if (name.equals(wanted) || name.endsWith("." + wanted)) {
            return true;
        }
        if (name.indexOf('.') >= 0) {
            return false;
        }
        String simple = after(wanted, '.');
        return name.equals(simple) || name.equals(after(simple, '$'));
    }

    static boolean isAnyType(String name, List<String> wanted) {
        return wanted.stream().anyMatch(one -> isType(name, one));
    }

    /** Whether {@code class.method} starts with {@code asked}, also if it is relocated. */
    static boolean isFrame(String given, String asked) {
        String name = canonical(given);
        String wanted = canonical(asked);
        return name.startsWith(wanted) || name.contains("." + wanted);
    }

    private static String canonical(String name) {
        return name.startsWith(AKKA) ? PEKKO + name.substring(AKKA.length()) : name;
    }

    private static String after(String name, char mark) {
        return name.substring(name.lastIndexOf(mark) + 1);
    }
}
