package flinktriage.enricher;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.util.SerializedThrowable;

/**
 * A throwable in the form in which {@code printStackTrace} prints it. Immutable.
 *
 * <p>Frames that a cause shares with its enclosing throwable are omitted, and each throwable is
 * contained only once. The size is limited to {@value #MAX_THROWABLES} throwables, {@value
 * #MAX_FRAMES} frames, {@value #MAX_TEXT} characters of messages, and {@value
 * #MAX_SUPPRESSED_DEPTH} levels of suppressed throwables.
 */
public final class Failure {

    static final int MAX_THROWABLES = 256;
    static final int MAX_SUPPRESSED_DEPTH = 8;
    static final int MAX_FRAMES = 20_000;
    static final int MAX_TEXT = 1024 * 1024;
    /** The maximum length of a text. The middle of a longer text is cut out. */
    static final int MAX_PIECE = 64 * 1024;

    private static final int MAX_TYPE = 512;
    private static final String ENDING = "(?:Exception|Error|Throwable|Failure|Fault)";
    private static final Pattern REMOTE =
            Pattern.compile("\\(([A-Za-z_$][\\w.$]*" + ENDING + ")\\):");

    private static final int MAX_LEADING_CLASSES = 4;
    private static final Pattern LEADING_CLASS =
            Pattern.compile("([a-z]\\w{0,64}(?:\\.[\\w$]{1,255}){1,30}):(?:[ \n]|$)");
    private static final Pattern SUFFIX = Pattern.compile(ENDING + "$");
    private static final Pattern INFIX =
            Pattern.compile("Exception|Error|Throwable|ThreadDeath|Interrupt|Timeout");

    /** A frame; {@code file} is null if the source is unknown. */
    public static final class Frame {
        final String className;
        final String method;
        final String file;

        public Frame(String className, String method, String file) {
            this.className = className;
            this.method = method;
            this.file = file;
        }

        String name() {
            return className + "." + method;
        }
    }

    /** A throwable. Suppressed throwables are chains, outermost first. */
    public static final class Link {
        final String type;
        final String text;
        final List<Frame> frames;
        final List<List<Link>> suppressed;

        public Link(String type, String message, List<Frame> frames, List<List<Link>> suppressed) {
            this.type = type;
            this.text = cutMiddle(message.isEmpty() ? type : type + ": " + message);
            this.frames = List.copyOf(frames);
            this.suppressed = List.copyOf(suppressed);
        }
    }

    /** A throwable and its index in {@code pieces}, which is 0 for the root cause. */
    static final class Piece {
        final int depth;
        final Link link;

        Piece(int depth, Link link) {
            this.depth = depth;
            this.link = link;
        }
    }

    /** Outermost first; empty if there is no throwable. */
    final List<Link> causes;
    /** Closest to the root cause first; suppressed throwables follow after all causes. */
    final List<Piece> pieces;
    /** The class of the root cause and the classes at the start of its message, in this order. */
    final List<String> rootTypes;
    /** The texts of all pieces in reverse order, one per line. */
    final String whole;

    public Failure(List<Link> causes) {
        this.causes = List.copyOf(causes);
        this.pieces = List.copyOf(withDepths(this.causes));
        StringBuilder texts = new StringBuilder();
        for (int i = pieces.size() - 1; i >= 0; i--) {
            texts.append('\n').append(pieces.get(i).link.text);
        }
        this.whole = cutMiddle(texts.toString());
        int last = this.causes.size() - 1;
        this.rootTypes = last < 0 ? List.of() : statedTypes(this.causes.get(last));
    }

    /**
     * The message of {@code new CompletionException(cause)} is {@code cause.toString()}. If the cause
     * itself was lost, only this message remains.
     */
    private static List<String> statedTypes(Link link) {
        List<String> types = new ArrayList<>(List.of(link.type));
        Matcher leading = LEADING_CLASS.matcher(link.text);
        leading.region(Math.min(link.type.length() + 2, link.text.length()), link.text.length());
        while (types.size() <= MAX_LEADING_CLASSES
                && leading.lookingAt()
                && isThrowable(leading.group(1))) {
            types.add(leading.group(1));
            leading.region(leading.end(), link.text.length());
        }
        return List.copyOf(types);
    }

    private static boolean isThrowable(String type) {
        int dot = type.lastIndexOf('.');
        String last = type.substring(dot + 1);
        return SUFFIX.matcher(last).find() || type.indexOf('.') < dot && INFIX.matcher(last).find();
    }

    /** Whether a throwable has one of the types; the root cause also has those of its message. */
    boolean isAnyType(Piece piece, List<String> wanted) {
        return piece.depth == 0
                ? rootTypes.stream().anyMatch(type -> Names.isAnyType(type, wanted))
                : Names.isAnyType(piece.link.type, wanted);
    }

    /** Ignores runtime exceptions thrown by methods of {@code throwable}. Cycles are cut. */
    public static Failure of(Throwable throwable) {
        return new Failure(new Reader().chain(throwable, new StackTraceElement[0], 0));
    }

    static String cutMiddle(String text) {
        int half = MAX_PIECE / 2;
        return text.length() <= MAX_PIECE
                ? text
                // Because of the newline, no literal is found across the cut.
                : text.substring(0, half) + "\n" + text.substring(text.length() - half);
    }

    private static List<Piece> withDepths(List<Link> causes) {
        List<Piece> pieces = new ArrayList<>();
        Deque<List<Link>> waiting = new ArrayDeque<>();
        int last = causes.size() - 1;
        for (int i = last; i >= 0; i--) {
            pieces.add(new Piece(last - i, causes.get(i)));
        }
        causes.forEach(link -> waiting.addAll(link.suppressed));
        int depth = causes.size();
        while (!waiting.isEmpty()) {
            List<Link> chain = waiting.remove();
            for (int i = chain.size() - 1; i >= 0; i--) {
                pieces.add(new Piece(depth++, chain.get(i)));
                waiting.addAll(chain.get(i).suppressed);
            }
        }
        return pieces;
    }

    /** Reads a throwable in the order of {@code printStackTrace}. */
    private static final class Reader {

        private final Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        private int frames;
        private int chars;

        List<Link> chain(Throwable first, StackTraceElement[] enclosing, int depth) {
            List<Link> links = new ArrayList<>();
            Throwable throwable = first;
            while (throwable != null && seen.size() < MAX_THROWABLES && seen.add(throwable)) {
                StackTraceElement[] trace = traceOf(throwable);
                Throwable cause = causeOf(throwable);
                String type = typeOf(throwable);
                links.add(
                        new Link(
                                type,
                                message(throwable, type, cause),
                                shown(trace, enclosing),
                                suppressed(throwable, trace, depth)));
                enclosing = trace;
                throwable = cause;
            }
            return links;
        }

        private List<List<Link>> suppressed(
                Throwable throwable, StackTraceElement[] trace, int depth) {
            List<List<Link>> chains = new ArrayList<>();
            if (depth < MAX_SUPPRESSED_DEPTH) {
                for (Throwable one : throwable.getSuppressed()) {
                    List<Link> chain = chain(one, trace, depth + 1);
                    if (!chain.isEmpty()) {
                        chains.add(chain);
                    }
                }
            }
            return chains;
        }

        private List<Frame> shown(StackTraceElement[] trace, StackTraceElement[] enclosing) {
            int end = trace.length;
            int other = enclosing.length;
            while (end > 0 && other > 0 && trace[end - 1].equals(enclosing[other - 1])) {
                end--;
                other--;
            }
            List<Frame> shown = new ArrayList<>();
            for (int i = 0; i < end && frames < MAX_FRAMES; i++, frames++) {
                StackTraceElement e = trace[i];
                String file = e.isNativeMethod() ? "Native Method" : e.getFileName();
                shown.add(new Frame(e.getClassName(), e.getMethodName(), file));
            }
            return shown;
        }

        private String message(Throwable throwable, String type, Throwable cause) {
            String text = printed(throwable, type);
            if (text.length() > MAX_TEXT - chars) {
                text = text.substring(0, MAX_TEXT - chars);
            }
            chars += text.length();
            String repeated = type + ": ";
            // new X(cause) prints "X: X: message" for a cause of type X; this is not a repetition.
            if (text.startsWith(repeated) && (cause == null || !typeOf(cause).equals(type))) {
                text = text.substring(repeated.length());
            }
            return text.strip();
        }

        /** The text after the type in the header line of the throwable. */
        private static String printed(Throwable throwable, String type) {
            try {
                boolean isSerialized = throwable instanceof SerializedThrowable;
                // The message of a SerializedThrowable is "type: message" of the original.
                String header = isSerialized ? throwable.getMessage() : throwable.toString();
                if (header == null || header.equals(type)) {
                    return "";
                }
                String remote = throwable.getClass().getName() + "(" + type + "):";
                if (!isSerialized && header.startsWith(remote)) {
                    return header.substring(remote.length()).strip();
                }
                boolean isNamed = header.startsWith(type + ":");
                return isNamed ? header.substring(type.length() + 1).strip() : header.strip();
            } catch (RuntimeException problem) {
                return "";
            }
        }

        private static String typeOf(Throwable throwable) {
            if (throwable instanceof SerializedThrowable) {
                return ((SerializedThrowable) throwable).getOriginalErrorClassName();
            }
            String type = throwable.getClass().getName();
            String remote = remoteType(throwable, type);
            return remote == null ? type : remote;
        }

        /** The class thrown by a server, which Hadoop's RemoteException prints in parentheses. */
        private static String remoteType(Throwable throwable, String type) {
            try {
                String header = throwable.toString();
                if (header == null || !header.startsWith(type + "(")) {
                    return null;
                }
                int end = Math.min(header.length(), type.length() + MAX_TYPE);
                Matcher named = REMOTE.matcher(header).region(type.length(), end);
                return named.lookingAt() ? named.group(1) : null;
            } catch (RuntimeException problem) {
                return null;
            }
        }

        private static Throwable causeOf(Throwable throwable) {
            try {
                return throwable.getCause();
            } catch (RuntimeException problem) {
                return null;
            }
        }

        private static StackTraceElement[] traceOf(Throwable throwable) {
            try {
                StackTraceElement[] trace = throwable.getStackTrace();
                return trace == null ? new StackTraceElement[0] : trace;
            } catch (RuntimeException problem) {
                return new StackTraceElement[0];
            }
        }
    }
}
