package pagewise;

import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;

/** A way to read at an offset. Entries are byte offsets in the table. */
abstract class Reader extends Work {
    final Part part;
    final MemorySegment table;
    final int readBytes;
    final int pageBytes;
    final boolean last;
    private final boolean touches;
    private final boolean dependent;

    Reader(Part part) {
        this.part = part;
        table = part.table;
        readBytes = part.job.readBytes;
        pageBytes = part.job.pageBytes;
        last = part.job.touchLast;
        touches = part.job.consume.equals("touch");
        dependent = part.job.dependent;
    }

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

    /** What the checksum of the read at an entry is multiplied by: 2 * its place in the table + 1. */
    static long weight(long entry) {
        return entry / 4 + 1;
    }

    /** Reads whole operations and returns the weighted sum of the checksums of their reads. */
    long read(long from, long to) throws CallFailure {
        if (dependent) {
            return touches ? touchDependent(from, to) : sumDependent(from, to);
        }
        return touches ? touch(from, to) : sum(from, to);
    }

    abstract long touch(long from, long to) throws CallFailure;

    abstract long sum(long from, long to) throws CallFailure;

    abstract long touchDependent(long from, long to) throws CallFailure;

    abstract long sumDependent(long from, long to) throws CallFailure;

    /** One read, outside any clock. */
    abstract void fetch(long offset, MemorySegment into) throws CallFailure;

    /** The mapping, descriptor or channel, for other threads that share it. */
    MemorySegment file() {
        throw new UnsupportedOperationException("no mapping");
    }

    int descriptor() {
        throw new UnsupportedOperationException("no descriptor");
    }

    FileChannel channel() {
        throw new UnsupportedOperationException("no channel");
    }
}
