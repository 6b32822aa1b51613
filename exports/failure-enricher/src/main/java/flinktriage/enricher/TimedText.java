package flinktriage.enricher;

/**
 * The beginning of a text, with a time limit. {@code java.util.regex} has no timeout, but reads
 * characters through {@link #charAt}, which checks the time.
 */
final class TimedText implements CharSequence {

    /** Thrown if the time limit is exceeded. */
    static final class TimeOver extends RuntimeException {
        TimeOver() {
            super("a regex took too long", null, false, false);
        }
    }

    private static final int READS_PER_LOOK = 4096;

    private final String text;
    private final int end;
    private final long deadline;
    private int reads;

    TimedText(String text, int end, long deadline) {
        this.text = text;
        this.end = end;
        this.deadline = deadline;
    }

    @Override
    public int length() {
        return end;
    }

    @Override
    public char charAt(int index) {
        if (++reads % READS_PER_LOOK == 0 && System.nanoTime() - deadline > 0) {
            throw new TimeOver();
        }
        return text.charAt(index);
    }

    @Override
    public CharSequence subSequence(int from, int to) {
        return text.substring(from, to);
    }

    @Override
    public String toString() {
        return text.substring(0, end);
    }
}
