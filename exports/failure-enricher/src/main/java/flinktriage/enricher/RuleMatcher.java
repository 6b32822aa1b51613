package flinktriage.enricher;

import flinktriage.enricher.Failure.Frame;
import flinktriage.enricher.Failure.Link;
import flinktriage.enricher.Failure.Piece;
import flinktriage.enricher.Rules.Alternative;
import flinktriage.enricher.Rules.Signature;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Matches rules against a failure. Has no mutable state and is thread-safe.
 *
 * <p>For the exported signatures, the matches are those that flink-triage finds in the same stack
 * trace without a log line. Tests compare both.
 */
public final class RuleMatcher {

    /** The maximum length of the text that a regex searches, around the first literal. */
    static final int MAX_REGEX_CHARS = 8 * 1024;

    private static final long REGEX_NANOS = 250_000_000L;
    /** The time limit for all regexes on one failure. A regex that exceeds it does not match. */
    private static final long FAILURE_NANOS = 2_000_000_000L;
    private static final long WARM_UP_NANOS = 500_000_000L;

    /** The depth of a match that does not belong to a single throwable. */
    private static final int NOWHERE = Integer.MAX_VALUE;
    private static final String NONE = "";

    private static final Comparator<Match> NEAREST_THEN_SPECIFIC =
            Comparator.<Match>comparingInt(match -> match.depth)
                    .thenComparing(match -> -match.specificity);

    private static final Comparator<Match> BEST_FIRST =
            Comparator.<Match, Boolean>comparing(match -> match.signature.isGeneric)
                    .thenComparing(NEAREST_THEN_SPECIFIC)
                    .thenComparing(match -> match.signature.id);

    /** A signature that matches, and the position and specificity of the match. */
    public static final class Match {
        public final Signature signature;
        final int depth;
        final int specificity;

        Match(Signature signature, int depth, int specificity) {
            this.signature = signature;
            this.depth = depth;
            this.specificity = specificity;
        }
    }

    private final Rules rules;
    private final Origins origins;

    public RuleMatcher(Rules rules) {
        this.rules = rules;
        this.origins = rules.origins();
    }

    /** Best first: generic signatures last, then by distance from the root cause and specificity. */
    public List<Match> match(Failure failure) {
        long deadline = System.nanoTime() + FAILURE_NANOS;
        List<Match> matches = new ArrayList<>();
        if (failure.causes.isEmpty()) {
            return matches;
        }
        for (Signature signature : rules.signatures) {
            Match match = match(signature, failure, deadline);
            if (match != null) {
                matches.add(match);
            }
        }
        if (matches.stream().anyMatch(match -> match.signature.explainsFailure())) {
            matches.removeIf(match -> match.signature.isFallback);
        }
        matches.sort(BEST_FIRST);
        return matches;
    }

    /**
     * Matches failures that are derived from the rules, so that the first real failure is labeled
     * quickly. Flink drops labels that are available only after the job has ended.
     */
    void warmUp() {
        long deadline = System.nanoTime() + WARM_UP_NANOS;
        for (Signature signature : rules.signatures) {
            Alternative first = signature.alternatives.get(0);
            String type = first.throwables.isEmpty() ? "X" : first.throwables.get(0);
            match(Failure.of(new RuntimeException(type, new Exception(type + first.literals))));
            if (System.nanoTime() - deadline > 0) {
                return;
            }
        }
    }

    private Match match(Signature signature, Failure failure, long deadline) {
        Match best = null;
        int specificity = 0;
        for (Alternative alternative : signature.alternatives) {
            int depth = depthOf(alternative, failure, deadline);
            if (depth < 0) {
                if (signature.needsAll) {
                    return null;
                }
                continue;
            }
            specificity += alternative.specificity;
            Match match = new Match(signature, depth, alternative.specificity);
            if (best == null || NEAREST_THEN_SPECIFIC.compare(match, best) < 0) {
                best = match;
            }
        }
        for (Alternative veto : best == null ? List.<Alternative>of() : signature.vetoes) {
            if (depthOf(veto, failure, deadline) >= 0) {
                return null;
            }
        }
        return best != null && signature.needsAll
                ? new Match(signature, best.depth, specificity)
                : best;
    }

    /** The distance of the match from the root cause, NOWHERE, or -1 if there is no match. */
    private int depthOf(Alternative alternative, Failure failure, long deadline) {
        if (!holdsOfTrace(alternative, failure)) {
            return -1;
        }
        if (!alternative.isOfAnyOrigin() && alternative.literals.isEmpty()) {
            return framedDepth(failure);
        }
        switch (alternative.scope) {
            case "throwable":
                for (Piece piece : failure.pieces) {
                    if (failure.isAnyType(piece, alternative.throwables)
                            && isIn(alternative, piece.link.text, deadline)) {
                        return piece.depth;
                    }
                }
                return -1;
            case "root-cause":
                return isIn(alternative, failure.pieces.get(0).link.text, deadline) ? 0 : -1;
            case "frame":
                for (Piece piece : failure.pieces) {
                    if (!piece.link.frames.isEmpty()
                            && isIn(alternative, frameLines(piece.link), deadline)) {
                        return piece.depth;
                    }
                }
                return -1;
            default:
                return depthInEvent(alternative, failure, deadline);
        }
    }

    private int depthInEvent(Alternative alternative, Failure failure, long deadline) {
        for (Piece piece : failure.pieces) {
            if (isIn(alternative, piece.link.text, deadline)) {
                return piece.depth;
            }
        }
        boolean mayBeSpread = alternative.literals.size() > 1 || alternative.regex != null;
        if (!mayBeSpread || !isIn(alternative, failure.whole, deadline)) {
            return -1;
        }
        List<String> types =
                alternative.throwables.isEmpty() ? alternative.rootCauses : alternative.throwables;
        for (Piece piece : failure.pieces) {
            String text = piece.link.text;
            if (types.isEmpty()
                    ? alternative.literals.stream().anyMatch(text::contains)
                    : failure.isAnyType(piece, types)) {
                return piece.depth;
            }
        }
        return NOWHERE;
    }

    private boolean holdsOfTrace(Alternative alternative, Failure failure) {
        if (!alternative.throwables.isEmpty()
                && failure.pieces.stream()
                        .noneMatch(p -> failure.isAnyType(p, alternative.throwables))) {
            return false;
        }
        String innermost = failure.rootTypes.get(failure.rootTypes.size() - 1);
        if (!alternative.rootCauses.isEmpty()
                && !Names.isAnyType(innermost, alternative.rootCauses)) {
            return false;
        }
        if (!alternative.isOfAnyOrigin()) {
            return failingOrigin(failure).equals(alternative.frameOrigin);
        }
        return alternative.frames.isEmpty()
                || failure.pieces.stream()
                        .flatMap(piece -> piece.link.frames.stream())
                        .map(Frame::name)
                        .anyMatch(n -> alternative.frames.stream().anyMatch(w -> Names.isFrame(n, w)));
    }

    /**
     * Returns the origin of the first frame outside of the JDK and libraries, in the innermost
     * cause that has frames. If user code called a connector, the origin is user.
     */
    private String failingOrigin(Failure failure) {
        int depth = framedDepth(failure);
        List<Frame> frames = depth < 0 ? List.of() : failure.pieces.get(depth).link.frames;
        List<String> found = new ArrayList<>();
        for (Frame frame : frames) {
            String origin = origins.of(frame.className, frame.file);
            if (!origin.equals("jdk") && !origin.equals("library")) {
                found.add(origin);
            }
        }
        Optional<String> caller = found.stream().filter(o -> !o.equals("connector")).findFirst();
        if (caller.isEmpty() || !caller.get().equals("user")) {
            return found.isEmpty() ? NONE : found.get(0);
        }
        return areShortened(frames) ? NONE : "user";
    }

    /** Whether the frames belong to several classes without packages, which may be Flink's. */
    private static boolean areShortened(List<Frame> frames) {
        return frames.stream().map(frame -> frame.className).distinct().count() > 1
                && frames.stream().noneMatch(frame -> frame.className.indexOf('.') >= 0);
    }

    private static int framedDepth(Failure failure) {
        for (int depth = 0; depth < failure.causes.size(); depth++) {
            if (!failure.pieces.get(depth).link.frames.isEmpty()) {
                return depth;
            }
        }
        return -1;
    }

    private static boolean isIn(Alternative alternative, String text, long deadline) {
        int first = alternative.literals.isEmpty() ? 0 : text.length();
        for (String literal : alternative.literals) {
            int position = text.indexOf(literal);
            if (position < 0) {
                return false;
            }
            first = Math.min(first, position);
        }
        return alternative.regex == null || finds(alternative.regex, text, first, deadline);
    }

    private static boolean finds(Pattern regex, String text, int position, long deadline) {
        int start = 0;
        int end = text.length();
        if (end > MAX_REGEX_CHARS) {
            start = Math.min(position - MAX_REGEX_CHARS / 4, end - MAX_REGEX_CHARS);
            start = Math.max(0, start);
            end = start + MAX_REGEX_CHARS;
        }
        long limit = Math.min(System.nanoTime() + REGEX_NANOS, deadline);
        try {
            Matcher matcher = regex.matcher(new TimedText(text, end, limit));
            matcher.useTransparentBounds(true).useAnchoringBounds(false).region(start, end);
            return matcher.find();
        } catch (TimedText.TimeOver | StackOverflowError problem) {
            // java.util.regex repeats groups recursively, so a long text can overflow the stack.
            return false;
        }
    }

    private static String frameLines(Link link) {
        StringBuilder lines = new StringBuilder();
        for (Frame frame : link.frames) {
            String file = frame.file == null ? "Unknown Source" : frame.file;
            lines.append(lines.length() == 0 ? "" : "\n");
            lines.append(frame.name()).append('(').append(file).append(')');
        }
        return Failure.cutMiddle(lines.toString());
    }
}
