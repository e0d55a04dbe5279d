package pagewise;

import java.lang.foreign.MemorySegment;

/**
 * A way to read at an offset. Entries are byte offsets in the table.
 *
 * <p>The loops are the same for every way. Nothing is compiled for several of them together: a process has one method,
 * whose class is the only one that the calls in these loops meet, so they are compiled in place. There is a loop for
 * each way of consuming, and none with a test of an option inside.
 */
abstract class Reader extends Work {
    final Part part;
    final int readBytes;
    final int pageBytes;
    final boolean last;
    private final MemorySegment table;
    private final boolean touches;
    private final boolean dependent;
    /** Advice of what an operation will read; null: there is none. */
    private final Prefetcher prefetcher;

    Reader(Part part, Prefetcher prefetcher) {
        this.part = part;
        this.prefetcher = prefetcher;
        table = part.table;
        readBytes = part.job.readBytes;
        pageBytes = part.job.pageBytes;
        last = part.job.touchLast;
        touches = part.job.consume.equals("touch");
        dependent = part.job.dependent;
    }

    /** Moves the bytes of a read, and returns where they are: what {@link #touch} and the others take. */
    abstract long get(long offset) throws CallFailure;

    /** Words of pages of a read. */
    abstract long touch(long at);

    /** All words of a read. */
    abstract long sum(long at);

    /** The first word of a read. */
    abstract long word(long at);

    /** One read, outside any clock. */
    abstract void fetch(long offset, MemorySegment into) throws CallFailure;

    /** A batch never goes across the end of the part. */
    @Override
    final long perform(long position, long wanted) throws CallFailure {
        long lap = Long.remainderUnsigned(position, part.operations);
        long done = Math.min(wanted, part.operations - lap);
        long from = part.firstByte + lap * part.operationBytes;
        checksum += read(from, from + done * part.operationBytes);
        bytes += done * part.job.readsPerOp * readBytes;
        return done;
    }

    /** Reads whole operations and returns the weighted sum of the checksums of their reads. */
    private long read(long from, long to) throws CallFailure {
        if (prefetcher != null) {
            long total = 0;
            for (long operation = from; operation < to; operation += part.operationBytes) {
                long end = operation + part.operationBytes;
                prefetcher.advise(operation, end);
                total += touches ? touchAll(operation, end) : sumAll(operation, end);
            }
            return total;
        }
        if (dependent) {
            return touches ? touchDependent(from, to) : sumDependent(from, to);
        }
        return touches ? touchAll(from, to) : sumAll(from, to);
    }

    /** Weight of the checksum of the read at an entry: 2 * its place in the table + 1. */
    private static long weight(long entry) {
        return entry / 4 + 1;
    }

    /** Timed: {@code for each entry: at = get(offset), total += weight * touch(at)}. */
    private long touchAll(long from, long to) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to; entry += 8) {
            total += weight(entry) * touch(get(table.get(Words.WORD_LAYOUT, entry)));
        }
        return total;
    }

    /** Timed: the same with {@code sum(at)}. */
    private long sumAll(long from, long to) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to; entry += 8) {
            total += weight(entry) * sum(get(table.get(Words.WORD_LAYOUT, entry)));
        }
        return total;
    }

    /**
     * Timed: {@code for each operation: link = 0; for each entry: at = get(entry ^ link), link = word(at),
     * total += weight * touch(at)}.
     */
    private long touchDependent(long from, long to) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to;) {
            long link = 0;
            for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                long at = get(part.follow(entry, link));
                link = word(at);
                total += weight(entry) * touch(at);
            }
        }
        return total;
    }

    /** Timed: the same with {@code sum(at)}. */
    private long sumDependent(long from, long to) throws CallFailure {
        long total = 0;
        for (long entry = from; entry < to;) {
            long link = 0;
            for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                long at = get(part.follow(entry, link));
                link = word(at);
                total += weight(entry) * sum(at);
            }
        }
        return total;
    }
}
