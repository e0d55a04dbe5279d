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

    /** Offset of the read at an entry: the data of earlier reads, the mask, hide it. */
    long offset(long entry, long mask) throws CallFailure {
        long offset = table.get(Words.WORD_LAYOUT, entry) ^ mask;
        if (Long.compareUnsigned(offset, lastOffset) > 0) {
            throw astray(offset);
        }
        return offset;
    }

    private CallFailure astray(long offset) {
        return new CallFailure("read by the table", 0, job.path, offset, "the data of " + job.path
                + " led to offset " + Long.toUnsignedString(offset) + ", past the " + job.spanBytes
                + " bytes that are read: they are not those that the offset table was made of", false);
    }
}
