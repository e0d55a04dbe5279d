package pagewise;

/** The lengths of batches between operations that are timed by themselves. */
final class Gaps {
    /** A mean gap shorter than this is doubled: its clocks would be felt. */
    private static final long GAP_MIN_NS = 40_000;
    /** One longer than this is halved: there would be few latencies. */
    private static final long GAP_MAX_NS = 160_000;
    /** After so many measures the mean is found; a stall among the first ones must not end its growth. */
    static final int STEADY_MEASURES = 3;

    private long random;
    private long mean = 1;
    /** Measures in a row that left the mean as it was. */
    private int steady;

    Gaps(long seed) {
        random = seed;
    }

    /** From 1 to twice the mean, exclusive. SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
    long draw() {
        random += 0x9e37_79b9_7f4a_7c15L;
        long mixed = (random ^ random >>> 30) * 0xbf58_476d_1ce4_e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d0_49bb_1331_11ebL;
        return 1 + Math.unsignedMultiplyHigh(mixed ^ mixed >>> 31, 2 * mean - 1);
    }

    /** Makes the mean gap last 40 to 160 us. True while it grows from 1. Short gaps are no measure. */
    boolean adapt(long gap, long tookNs) {
        if (gap < mean) {
            return false;
        }
        long meanTakesNs = Stalls.pace(gap, tookNs, mean);
        if (meanTakesNs < GAP_MIN_NS) {
            mean *= 2;
            boolean begins = steady < STEADY_MEASURES;
            steady = begins ? 0 : steady;
            return begins;
        }
        if (mean > 1 && meanTakesNs > GAP_MAX_NS) {
            mean /= 2;
        }
        steady = Math.min(steady + 1, STEADY_MEASURES);
        return false;
    }

    /** True if the mean has stopped growing from 1. */
    boolean isFound() {
        return steady == STEADY_MEASURES;
    }
}
