package pagewise;

/**
 * The work of a thread between two clocks. A position counts operations from the thread's first one
 * on, passes too.
 */
abstract class Work {
    /** Sum of the checksums of all that was consumed. */
    long checksum;
    /** Bytes asked for and received, or that reached the file. */
    long bytes;

    /** A sample begins, before its clock. */
    void begin(JobThreads.Order order) { }

    /**
     * Does at most {@code wanted} operations from {@code position} on, at least one, and returns
     * how many.
     */
    abstract long perform(long position, long wanted) throws CallFailure;

    /** Puts what is collected in a buffer into the file. */
    void finish() throws CallFailure { }

    /** Puts what was written on the device. */
    void sync() throws CallFailure { }

    /**
     * Durations of the syncs within the measured region, those of all threads; null where nothing
     * is written.
     */
    Histogram syncs() {
        return null;
    }
}
