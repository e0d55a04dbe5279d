package pagewise;

/** A way to scan by pieces of whole pages, so that checksums do not depend on where pieces end. */
abstract class Scanner extends Work {
    /** Bytes of a file that are copied and consumed together in a scan. */
    static final int PIECE_BYTES = 64 << 10;

    final int pageBytes;
    private final long spanBytes;
    private final String consume;

    Scanner(Job job) {
        spanBytes = job.spanBytes;
        pageBytes = job.pageBytes;
        consume = job.consume;
    }

    /**
     * Moves the bytes of a piece, and returns where they are: what {@link #touch} and the others
     * take.
     */
    abstract long get(long offset, int len);

    abstract long touch(long at, int len);

    abstract long sum(long at, int len);

    abstract long lines(long at, int len);

    /**
     * Timed: {@code for each piece: total += touch(get(offset, len), len)}, or the same with {@code
     * sum} or {@code lines}. A piece takes microseconds, so the choice is made for each.
     */
    @Override
    long perform(long position, long wanted) throws CallFailure {
        long total = 0;
        for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
            int len = (int) Math.min(PIECE_BYTES, spanBytes - offset);
            long at = get(offset, len);
            total += switch (consume) {
                case "touch" -> touch(at, len);
                case "sum" -> sum(at, len);
                default -> lines(at, len);
            };
        }
        checksum += total;
        bytes += spanBytes;
        return 1;
    }
}
