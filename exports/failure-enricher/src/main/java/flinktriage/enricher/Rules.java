package flinktriage.enricher;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** The exported rules: one record per line, with tab-separated fields. Unchanged after reading. */
public final class Rules {

    static final Rules NONE = new Rules();

    private static final String VERSION = "2";
    private static final int FLAGS = Pattern.UNIX_LINES | Pattern.UNICODE_CHARACTER_CLASS;

    /** Conditions, all of which must be met; empty lists and null are ignored. */
    static final class Alternative {
        final String scope;
        final int specificity;
        final String frameOrigin;
        List<String> throwables = List.of();
        List<String> rootCauses = List.of();
        List<String> literals = List.of();
        List<String> frames = List.of();
        Pattern regex;

        Alternative(String scope, int specificity, String frameOrigin) {
            this.scope = scope;
            this.specificity = specificity;
            this.frameOrigin = frameOrigin;
        }

        boolean isOfAnyOrigin() {
            return frameOrigin.equals("any");
        }
    }

    private static final Set<String> ANSWERS = Set.of("trigger", "contributing", "symptom");

    /** The exported fields of a signature. */
    public static final class Signature {
        public final String id;
        final String severity;
        final String role;
        final boolean needsAll;
        final boolean isGeneric;
        final boolean isFallback;
        final List<Alternative> alternatives = new ArrayList<>();
        final List<Alternative> vetoes = new ArrayList<>();

        Signature(List<String> fields) {
            id = fields.get(1);
            severity = fields.get(2);
            role = fields.get(3);
            needsAll = fields.get(4).equals("all");
            isGeneric = fields.get(5).equals("generic");
            isFallback = fields.get(5).equals("fallback");
        }

        /** Whether fallbacks do not apply to a failure that it matches. */
        boolean explainsFailure() {
            return !isGeneric && !isFallback && ANSWERS.contains(role);
        }
    }

    final List<Signature> signatures = new ArrayList<>();
    private final Map<String, List<String>> origins = new HashMap<>();
    private Pattern generated = Pattern.compile("(?!)");
    private Pattern shaded = Pattern.compile("(?!)");
    private String digest = "none";

    private Rules() {}

    int size() {
        return signatures.size();
    }

    String digest() {
        return digest;
    }

    Origins origins() {
        return new Origins(origins, generated, shaded);
    }

    /** Throws an {@link IOException} with the invalid line if the stream is not a rules file. */
    public static Rules read(InputStream stream) throws IOException {
        Rules rules = new Rules();
        BufferedReader reader =
                new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
        int number = 0;
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            number++;
            List<String> fields = fieldsOf(line);
            if (number == 1 && !fields.equals(List.of("flink-triage-rules", VERSION))) {
                throw new IOException("line 1: no rules of version " + VERSION + ": " + line);
            }
            try {
                rules.add(fields);
            } catch (RuntimeException problem) {
                throw new IOException("line " + number + ": " + line, problem);
            }
        }
        if (number == 0) {
            throw new IOException("line 1: no rules, the file is empty");
        }
        return rules;
    }

    private void add(List<String> fields) {
        List<String> values = List.copyOf(fields.subList(1, fields.size()));
        switch (fields.get(0)) {
            case "flink-triage-rules":
                break;
            case "signature-set":
                digest = fields.get(1);
                break;
            case "origin":
                origins.put(fields.get(1), List.copyOf(fields.subList(2, fields.size())));
                break;
            case "generated":
                generated = Pattern.compile(fields.get(1), FLAGS);
                break;
            case "shaded":
                shaded = Pattern.compile(fields.get(1), FLAGS);
                break;
            case "signature":
                signatures.add(new Signature(fields));
                break;
            case "alternative":
                last(signatures).alternatives.add(alternative(fields));
                break;
            case "veto":
                last(signatures).vetoes.add(alternative(fields));
                break;
            default:
                addTo(current(), fields.get(0), values);
        }
    }

    private static Alternative alternative(List<String> fields) {
        int specificity = Integer.parseInt(fields.get(2));
        return new Alternative(fields.get(1), specificity, fields.get(3));
    }

    private Alternative current() {
        Signature signature = last(signatures);
        return last(signature.vetoes.isEmpty() ? signature.alternatives : signature.vetoes);
    }

    private static void addTo(Alternative alternative, String name, List<String> values) {
        switch (name) {
            case "throwable":
                alternative.throwables = values;
                break;
            case "root-cause":
                alternative.rootCauses = values;
                break;
            case "literal":
                alternative.literals = values;
                break;
            case "frame":
                alternative.frames = values;
                break;
            case "regex":
                alternative.regex = Pattern.compile(values.get(0), FLAGS);
                break;
            default:
                throw new IllegalArgumentException(
                        name + " is none of throwable, root-cause, literal, frame, regex");
        }
    }

    private static <T> T last(List<T> list) {
        return list.get(list.size() - 1);
    }

    static List<String> fieldsOf(String line) {
        List<String> fields = new ArrayList<>();
        for (String field : Arrays.asList(line.split("\t", -1))) {
            fields.add(field.indexOf('\\') < 0 ? field : unescape(field));
        }
        return fields;
    }

    private static String unescape(String field) {
        StringBuilder text = new StringBuilder(field.length());
        for (int i = 0; i < field.length(); i++) {
            char c = field.charAt(i);
            if (c == '\\' && i + 1 < field.length()) {
                c = field.charAt(++i);
                c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
            }
            text.append(c);
        }
        return text.toString();
    }
}
