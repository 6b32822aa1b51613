package flinktriage.enricher;

import java.util.List;

/** Is this the class, or the frame, that a rule asks for? Pure comparisons of names. */
final class Names {

    private static final String AKKA = "akka.";
    private static final String PEKKO = "org.apache.pekko.";

    private Names() {}

    /** Equal, relocated ({@code x.shaded.} + wanted), or without its package. */
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

    /** {@code asked} begins {@code class.method}, after any shaded package. */
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
