package pagewise;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** Updates: blocks at the offsets of a table, each after others that are read. */
final class Updates extends Work {
    private final Target target;
    private final MemorySegment table;
    private final ByteBuffer source;
    private final int period;
    private final int recordBytes;
    private final int readsEach;
    private final int pageBytes;
    private final boolean touchLast;
    /** Where blocks come to that are read: a byte array, or memory outside the heap. */
    private final ByteBuffer buffer;
    private final MemorySegment memory;
    private final byte[] array;
    private int touchAt;

    Updates(Job job, Target target, ByteBuffer source) throws CallFailure {
        if (job.tableReads != job.records * (job.readsPerOp + 1L)) {
            throw job.refusal("a table of " + job.tableReads + " accesses is not one of " + job.records
                    + " updates and " + job.readsPerOp + " reads before each", false);
        }
        if (job.readsPerOp > 0 && (!job.consume.equals("touch") || job.pageBytes < 8)) {
            throw job.refusal("there is no '" + job.consume + "' of blocks by the JVM's worker", true);
        }
        this.target = target;
        this.source = source;
        table = job.table;
        period = job.sourcePeriod;
        recordBytes = job.recordBytes;
        readsEach = job.readsPerOp;
        pageBytes = job.pageBytes;
        touchLast = job.touchLast;
        boolean heap = source.hasArray();
        buffer = heap ? ByteBuffer.allocate(recordBytes) : ByteBuffer.allocateDirect(recordBytes);
        array = heap ? buffer.array() : null;
        memory = heap ? null : MemorySegment.ofBuffer(buffer);
    }

    @Override
    void begin(JobThreads.Order order) {
        touchAt = order.touchAt();
    }

    /**
     * Timed: {@code for each update: (for each block before it: get(offset), checksum += weight * touch); put(source +
     * offset mod period, offset)}, and a sync whenever one is due.
     */
    @Override
    long perform(long position, long wanted) throws CallFailure {
        long entry = position * (readsEach + 1L) * 8;
        long weight = 2 * position * readsEach + 1;
        long total = 0;
        for (long left = wanted; left > 0; left--) {
            for (int nth = 0; nth < readsEach; nth++, entry += 8, weight += 2) {
                target.get(buffer, table.get(Words.WORD_LAYOUT, entry));
                total += weight * touch();
            }
            long offset = table.get(Words.WORD_LAYOUT, entry);
            entry += 8;
            target.putAt(source, (int) (offset % period), recordBytes, offset);
        }
        checksum += total;
        bytes = target.written;
        return wanted;
    }

    private long touch() {
        return array != null ? Heap.touch(array, recordBytes, touchAt, pageBytes, touchLast)
                : Native.touch(memory, 0, recordBytes, touchAt, pageBytes, touchLast);
    }

    @Override
    void finish() throws CallFailure {
        target.syncRest();
        bytes = target.written;
    }

    @Override
    void sync() throws CallFailure {
        target.syncAll();
    }

    @Override
    Histogram syncs() {
        return target.syncs;
    }
}
