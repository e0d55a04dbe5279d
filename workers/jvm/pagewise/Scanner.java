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

    /** Moves the bytes of a piece, and returns where they are: what {@link #touch} and the others take. */
    abstract long get(long offset, int len);

    abstract long touch(long at, int len);

    abstract long sum(long at, int len);

    abstract long lines(long at, int len);

    @Override
    long perform(long position, long wanted) throws CallFailure {
        checksum += switch (consume) {
            case "touch" -> touchAll();
            case "sum" -> sumAll();
            default -> linesAll();
        };
        bytes += spanBytes;
        return 1;
    }

    /** Timed: {@code for each piece: total += touch(get(offset, len), len)}. */
    private long touchAll() {
        long total = 0;
        for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
            int len = (int) Math.min(PIECE_BYTES, spanBytes - offset);
            total += touch(get(offset, len), len);
        }
        return total;
    }

    /** Timed: the same with {@code sum}. */
    private long sumAll() {
        long total = 0;
        for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
            int len = (int) Math.min(PIECE_BYTES, spanBytes - offset);
            total += sum(get(offset, len), len);
        }
        return total;
    }

    /** Timed: the same with {@code lines}. */
    private long linesAll() {
        long total = 0;
        for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
            int len = (int) Math.min(PIECE_BYTES, spanBytes - offset);
            total += lines(get(offset, len), len);
        }
        return total;
    }
}
