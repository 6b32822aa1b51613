package flinktriage.enricher;

/**
 * The head of a text that a regex may look at for so long: {@code java.util.regex} knows no timeout,
 * but reads every character through {@link #charAt}.
 */
final class TimedText implements CharSequence {

    /** Says that the time is over. */
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
