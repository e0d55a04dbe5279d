package pagewise;

import java.lang.foreign.MemorySegment;

/**
 * A way to read at an offset. Entries are byte offsets in the table.
 *
 * <p>The loops are the same for every way. Nothing is compiled for several of them together: a
 * process has one method, whose class is the only one that the calls in these loops meet, so they
 * are compiled in place. There is a loop for each way of consuming, and none with a test of an
 * option inside.
 */
abstract class Reader extends Work {
    final Part part;
    final int readBytes;
    final int pageBytes;
    final boolean last;
    /** Position in a page of the word that counts, of this sample. */
    int touchAt;
    private final Pieces pieces;
    private final boolean touches;
    private final boolean dependent;
    /** Advice of what an operation will read; null: there is none. */
    private final Prefetcher prefetcher;

    Reader(Part part, Prefetcher prefetcher) {
        this.part = part;
        this.prefetcher = prefetcher;
        pieces = new Pieces(part.operations, part.job.pieceReads / part.job.readsPerOp);
        readBytes = part.job.readBytes;
        pageBytes = part.job.pageBytes;
        last = part.job.touchLast;
        touches = part.job.consume.equals("touch");
        dependent = part.job.dependent;
    }

    /**
     * Moves the bytes of a read, and returns where they are: what {@link #touch} and the others
     * take.
     */
    abstract long get(long offset) throws CallFailure;

    /** Words of pages of a read. */
    abstract long touch(long at);

    /** All words of a read. */
    abstract long sum(long at);

    /** The first word of a read. */
    abstract long word(long at);

    /** One read, outside any clock. */
    abstract void fetch(long offset, MemorySegment into) throws CallFailure;

    @Override
    final void begin(JobThreads.Order order) {
        pieces.begin(order.firstOperation());
        touchAt = order.touchAt();
    }

    /** A batch never goes across the end of the part. */
    @Override
    final long perform(long position, long wanted) throws CallFailure {
        long pass = Long.remainderUnsigned(position, part.operations);
        long done = 0;
        for (long most = Math.min(wanted, part.operations - pass), count; done < most; done += count) {
            count = pieces.count(position + done, most - done);
            long from = part.firstByte + (pass + done) * part.operationBytes;
            long sum = read(from, from + count * part.operationBytes, pieces.mask);
            pieces.add(sum);
            checksum += sum;
        }
        bytes += done * part.job.readsPerOp * readBytes;
        return done;
    }

    /**
     * Reads whole operations of a piece and returns the weighted sum of the checksums of their
     * reads.
     */
    private long read(long from, long to, long mask) throws CallFailure {
        if (prefetcher != null) {
            long total = 0;
            for (long operation = from; operation < to; operation += part.operationBytes) {
                long end = operation + part.operationBytes;
                prefetcher.advise(operation, end, mask);
                total += touches ? touchAll(operation, end, mask) : sumAll(operation, end, mask);
            }
            return total;
        }
        if (dependent) {
            return touches ? touchDependent(from, to, mask) : sumDependent(from, to, mask);
        }
        return touches ? touchAll(from, to, mask) : sumAll(from, to, mask);
    }

    /** Weight of the checksum of the read at an entry: 2 * its position in the table + 1. */
    private static long weight(long entry) {
        return entry / 4 + 1;
    }

    /** Timed: {@code for each entry: at = get(entry ^ mask), total += weight * touch(at)}. */
    private long touchAll(long from, long to, long mask) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to; entry += 8) {
            total += weight(entry) * touch(get(part.offset(entry, mask)));
        }
        return total;
    }

    /** Timed: the same with {@code sum(at)}. */
    private long sumAll(long from, long to, long mask) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to; entry += 8) {
            total += weight(entry) * sum(get(part.offset(entry, mask)));
        }
        return total;
    }

    /**
     * Timed: {@code for each operation: link = 0; for each entry: at = get(entry ^ mask ^ link),
     * link = word(at), total += weight * touch(at)}.
     */
    private long touchDependent(long from, long to, long mask) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to;) {
            long link = 0;
            for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                long at = get(part.offset(entry, mask ^ link));
                link = word(at);
                total += weight(entry) * touch(at);
            }
        }
        return total;
    }

    /** Timed: the same with {@code sum(at)}. */
    private long sumDependent(long from, long to, long mask) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to;) {
            long link = 0;
            for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                long at = get(part.offset(entry, mask ^ link));
                link = word(at);
                total += weight(entry) * sum(at);
            }
        }
        return total;
    }
}
