package pagewise;

/** The lengths of batches between operations that are timed by themselves. */
final class Gaps {
    private final Policy policy;
    private long random;
    private long mean = 1;
    /** Measures in a row that did not double the mean. */
    private int steady;

    Gaps(long seed, Policy policy) {
        this.policy = policy;
        random = seed;
    }

    /** From 1 to twice the mean, exclusive. SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
    long draw() {
        random += 0x9e37_79b9_7f4a_7c15L;
        long mixed = (random ^ random >>> 30) * 0xbf58_476d_1ce4_e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d0_49bb_1331_11ebL;
        return 1 + Math.unsignedMultiplyHigh(mixed ^ mixed >>> 31, 2 * mean - 1);
    }

    /**
     * Makes the mean gap last as long as the policy says. True while it grows from 1. Short gaps
     * are no measure.
     */
    boolean adapt(long gap, long tookNs) {
        if (gap < mean) {
            return false;
        }
        long meanTakesNs = Stalls.pace(gap, tookNs, mean);
        if (meanTakesNs < policy.gapMinNs()) {
            mean *= 2;
            boolean begins = steady < policy.gapMeasures();
            steady = begins ? 0 : steady;
            return begins;
        }
        if (mean > 1 && meanTakesNs > policy.gapMaxNs()) {
            mean /= 2;
        }
        steady = Math.min(steady + 1, policy.gapMeasures());
        return false;
    }

    /** True if the mean has stopped growing from 1. */
    boolean isFound() {
        return steady == policy.gapMeasures();
    }
}
