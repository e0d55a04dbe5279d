package pagewise;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** Updates: blocks at the offsets of a table, each after others that are read. */
final class Updates extends Writers.Writer {
    private final MemorySegment table;
    /** The period and a block more, in the memory that the method writes from. */
    private final ByteBuffer blocks;
    private final int readsEach;
    private final int pageBytes;
    private final boolean touchLast;
    /** Where blocks come to that are read: a byte array, or memory outside the heap. */
    private final ByteBuffer buffer;
    private final MemorySegment memory;
    private final byte[] array;
    private int touchAt;
    /** Place in the table of the next access. */
    private long entry;
    /** Weight of the checksum of the next read. */
    private long weight = 1;

    Updates(Job job, Target target, ByteBuffer blocks) throws CallFailure {
        super(job, target);
        if (job.tableReads != job.records * (job.readsPerOp + 1L)) {
            throw job.refusal("a table of " + job.tableReads + " accesses is not one of " + job.records
                    + " updates and " + job.readsPerOp + " reads before each", false);
        }
        if (job.readsPerOp > 0 && (!job.consume.equals("touch") || job.pageBytes < 8)) {
            throw job.refusal("there is no '" + job.consume + "' of blocks by the JVM's worker", true);
        }
        this.blocks = blocks;
        table = job.table;
        readsEach = job.readsPerOp;
        pageBytes = job.pageBytes;
        touchLast = job.touchLast;
        boolean heap = blocks.hasArray();
        buffer = heap ? ByteBuffer.allocate(recordBytes) : ByteBuffer.allocateDirect(recordBytes);
        array = heap ? buffer.array() : null;
        memory = heap ? null : MemorySegment.ofBuffer(buffer);
    }

    @Override
    void begin(JobThreads.Order order) {
        touchAt = order.touchAt();
    }

    /**
     * Timed: {@code for each update: (for each block before it: get(offset), checksum += weight *
     * touch); put(blocks + offset mod period, offset)}, and a sync whenever one is due.
     */
    @Override
    void append(long updates) throws CallFailure {
        long next = entry;
        long weighs = weight;
        long total = 0;
        for (long left = updates; left > 0; left--) {
            for (int nth = 0; nth < readsEach; nth++, next += 8, weighs += 2) {
                target.get(buffer, table.get(Words.WORD_LAYOUT, next));
                total += weighs * touch();
            }
            long offset = table.get(Words.WORD_LAYOUT, next);
            next += 8;
            target.putAt(blocks, (int) (offset % period), recordBytes, offset);
        }
        checksum += total;
        entry = next;
        weight = weighs;
    }

    private long touch() {
        return array != null ? Heap.touch(array, recordBytes, touchAt, pageBytes, touchLast)
                : Native.touch(memory, 0, recordBytes, touchAt, pageBytes, touchLast);
    }
}
