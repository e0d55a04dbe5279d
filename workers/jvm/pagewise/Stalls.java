package pagewise;

/**
 * Batches that took longer by over {@code stall_ns}, and over twice as long, as their operations
 * take on average. A stalled one counts in the average as what it should have taken, else one long
 * stall would hide those after it.
 */
final class Stalls {
    /** Excess of a stalled batch over its operations' average. */
    private final long stallNs;

    long count;
    /** The longest, less the average of the other operations in its batch. */
    long longestNs;
    /** Operations without stalls, and their time; none yet: 0. */
    private long calmOperations;
    private long calmNs;
    /** The first batch, until there is another to compare it with; none: 0. */
    private long firstOperations;
    private long firstNs;

    Stalls(long stallNs) {
        this.stallNs = stallNs;
    }

    void clear() {
        count = longestNs = calmOperations = calmNs = firstOperations = firstNs = 0;
    }

    void note(long operations, long tookNs) {
        if (tookNs < stallNs && calmOperations > 0) {
            calmOperations += operations;
            calmNs += tookNs;
        } else {
            judge(operations, tookNs);
        }
    }

    /** Of the first two batches the one with the faster operations is the measure of the other. */
    private void judge(long operations, long tookNs) {
        if (calmOperations > 0) {
            compare(operations, tookNs);
        } else if (firstOperations == 0) {
            firstOperations = operations;
            firstNs = tookNs;
        } else if (pace(firstOperations, firstNs, 1) <= pace(operations, tookNs, 1)) {
            calmOperations = firstOperations;
            calmNs = firstNs;
            compare(operations, tookNs);
        } else {
            calmOperations = operations;
            calmNs = tookNs;
            compare(firstOperations, firstNs);
        }
    }

    private void compare(long operations, long tookNs) {
        long dueNs = pace(calmOperations, calmNs, operations);
        long countedNs = tookNs;
        if (tookNs > dueNs + Math.max(dueNs, stallNs)) {
            count++;
            longestNs = Math.max(longestNs, tookNs - pace(calmOperations, calmNs, operations - 1));
            countedNs = dueNs;
        }
        calmOperations += operations;
        calmNs += countedNs;
    }

    /** Time of {@code operations} at the pace of others. */
    static long pace(long of, long tookNs, long operations) {
        return (long) ((double) tookNs * operations / of);
    }
}
