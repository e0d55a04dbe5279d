package pagewise;

import java.lang.foreign.MemorySegment;

/** A thread's part of the table, and what is to be known of a read. */
final class Part {
    final Job job;
    final MemorySegment table;
    /** Its start in the table, and its number of operations. */
    final long firstByte;
    final long operations;
    /** Bytes of the table that make an operation. */
    final long operationBytes;
    /** The last offset from which a read fits into the span. */
    final long lastOffset;

    Part(Job job, int thread) {
        this.job = job;
        table = job.table;
        operationBytes = 8L * job.readsPerOp;
        operations = job.tableReads / job.readsPerOp / job.threads;
        firstByte = thread * operations * operationBytes;
        lastOffset = Math.max(0, job.spanBytes - job.readBytes);
    }

    /** Offset of the read that follows from the data of the one before it. */
    long follow(long entry, long link) throws CallFailure {
        long offset = table.get(Words.WORD_LAYOUT, entry) ^ link;
        if (Long.compareUnsigned(offset, lastOffset) > 0) {
            throw new CallFailure("dependent read", 0, job.path, offset, "a dependent read of " + job.path
                    + " led to offset " + Long.toUnsignedString(offset) + ", beyond the " + job.spanBytes
                    + " bytes that are read: its data are not those that the offset table was made of", false);
        }
        return offset;
    }
}
