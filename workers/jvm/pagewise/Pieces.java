package pagewise;

/**
 * The progress of a {@code go} in a thread's part of the table, piece by piece. Entries are XORed
 * with a mask: the checksum of the piece before the last one, and 0 in the first two of each pass.
 * All counts are operations.
 */
final class Pieces {
    private final long part;
    private final long size;
    /** Positions: where the {@code go} began, and behind the piece. */
    private long begun;
    private long end;
    /** The mask of the piece. */
    long mask;
    /** Checksum of the last piece, and of this one so far. */
    private long last;
    private long sum;

    Pieces(long part, long size) {
        this.part = part;
        this.size = size == 0 ? part : size;
    }

    void begin(long position) {
        begun = end = position;
    }

    /**
     * Of up to {@code wanted} operations from {@code position} on, where the last ones ended, how
     * many are of one piece and do not go across the end of the part.
     */
    long count(long position, long wanted) {
        if (position == end) {
            next();
        }
        return Math.min(wanted, Math.min(end - position, part - Long.remainderUnsigned(position, part)));
    }

    void add(long checksum) {
        sum += checksum;
    }

    private void next() {
        long inPass = Long.remainderUnsigned(end - begun, part);
        mask = inPass < 2 * size ? 0 : last;
        last = sum;
        sum = 0;
        end += Math.min(size, part - inPass);
    }
}
