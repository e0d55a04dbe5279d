package pagewise;

/** A way to scan. A pass goes by pieces of whole pages, so that checksums do not depend on where pieces end. */
abstract class Scanner extends Work {
    /** Bytes of a file that are copied and consumed together in a scan. */
    static final int PIECE_BYTES = 64 << 10;



    final long spanBytes;
    final int pageBytes;
    private final String consume;

    Scanner(Job job) {
        spanBytes = job.spanBytes;
        pageBytes = job.pageBytes;
        consume = job.consume;
    }

    @Override
    final long perform(long position, long wanted) throws CallFailure {
        checksum += switch (consume) {
            case "touch" -> touch();
            case "sum" -> sum();
            default -> lines();
        };
        bytes += spanBytes;
        return 1;
    }

    abstract long touch();

    abstract long sum();

    abstract long lines() throws CallFailure;

    final int pieceAt(long offset) {
        return (int) Math.min(PIECE_BYTES, spanBytes - offset);
    }
}
