package flinktriage.enricher;

import flinktriage.enricher.Failure.Frame;
import flinktriage.enricher.Failure.Link;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Arguments: a file of rules, a file of stack traces. Prints a line per trace with its name and all
 * matching signatures, best first.
 *
 * <p>A trace consists of a line {@code trace NAME}, its throwables, outermost first, and a line
 * {@code end}. A throwable consists of a line {@code throwable TYPE MESSAGE}, lines {@code frame
 * CLASS METHOD FILE}, and its suppressed chains, each between lines {@code suppressed} and {@code
 * end}. The fields are separated by tabs.
 */
public final class ParityProof {

    public static void main(String[] arguments) throws Exception {
        RuleMatcher matcher;
        try (InputStream stream = Files.newInputStream(Path.of(arguments[0]))) {
            matcher = new RuleMatcher(Rules.read(stream));
        }
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Iterator<List<String>> records =
                Files.readAllLines(Path.of(arguments[1])).stream().map(Rules::fieldsOf).iterator();
        while (records.hasNext()) {
            String name = records.next().get(1);
            List<RuleMatcher.Match> matches = matcher.match(new Failure(chain(records)));
            out.println(
                    name
                            + matches.stream()
                                    .map(match -> "\t" + match.signature.id)
                                    .collect(Collectors.joining()));
        }
        out.flush();
    }

    private static List<Link> chain(Iterator<List<String>> records) {
        List<Link> links = new ArrayList<>();
        String type = null;
        String message = null;
        List<Frame> frames = new ArrayList<>();
        List<List<Link>> suppressed = new ArrayList<>();
        while (true) {
            List<String> record = records.next();
            switch (record.get(0)) {
                case "frame":
                    String file = record.get(3).isEmpty() ? null : record.get(3);
                    frames.add(new Frame(record.get(1), record.get(2), file));
                    break;
                case "suppressed":
                    suppressed.add(chain(records));
                    break;
                default:
                    if (type != null) {
                        links.add(new Link(type, message, frames, suppressed));
                    }
                    if (record.get(0).equals("end")) {
                        return links;
                    }
                    type = record.get(1);
                    message = record.get(2);
                    frames = new ArrayList<>();
                    suppressed = new ArrayList<>();
            }
        }
    }

    private ParityProof() {}
}
