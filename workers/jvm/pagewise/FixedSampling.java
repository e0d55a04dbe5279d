package pagewise;

/**
 * Work that is an amount: a pass, or records. Batches of a random length alternate with single operations that are
 * timed; clocks leave no gap. What was timed while the mean gap grows is not kept, since it was timed more often.
 */
final class FixedSampling extends Sampling {
    /** A mean gap shorter than this is doubled: its clocks would be felt. */
    private static final long GAP_MIN_NS = 40_000;
    /** One longer than this is halved: there would be few latencies. */
    private static final long GAP_MAX_NS = 160_000;
    /** After so many measures the mean is found; a stall among the first ones must not end its growth. */
    private static final int STEADY_MEASURES = 3;

    private final long[] early = new long[2 * STEADY_MEASURES + 2];
    private int earlyCount;
    private boolean earlyClosed;

    private long random;
    private long mean;
    /** Measures in a row that left the mean as it was. */
    private int steady;

    private long position;
    private long end;

    FixedSampling(Crew crew, Work work) {
        super(crew, work);
    }

    @Override
    void perform(Crew.Order order) {
        earlyCount = steady = 0;
        earlyClosed = false;
        random = crew.job.gapSeed;
        mean = 1;
        position = order.firstOperation();
        end = crew.job.writes() ? crew.job.records : position + 1;
        try {
            measure(order.sampleNs() == 0 ? Long.MAX_VALUE : order.sampleNs());
        } catch (CallFailure thrown) {
            fail(thrown);
        } catch (InternalError thrown) {
            fail(CallFailure.fault(thrown, crew.job.path));
        }
        keepEarly();
        operations = position - order.firstOperation();
    }

    /** Timed region: {@code for each gap: operations; clock; one operation; clock}, then what a buffer holds. */
    private void measure(long sampleNs) throws CallFailure {
        long now = startedNs = System.nanoTime();
        while (position < end && now - startedNs < sampleNs) {
            long gap = drawGap();
            long begun = now;
            now = stretch(gap, now);
            if (position < end && adapt(gap, now - begun)) {
                earlyCount = 0;
            }
            if (steady == STEADY_MEASURES && earlyCount > 0) {
                keepEarly();
            }
            if (position < end) {
                now = stretch(1, now);
            }
        }
        work.finish();
        endedNs = System.nanoTime();
    }

    /** Does {@code wanted} operations, fewer at the end. A single one has a clock of its own. */
    private long stretch(long wanted, long before) throws CallFailure {
        long begun = wanted == 1 ? System.nanoTime() : before;
        long done = work.perform(position, Math.min(wanted, end - position));
        long after = System.nanoTime();
        position += done;
        if (wanted == 1) {
            if (!earlyClosed && earlyCount < early.length) {
                early[earlyCount++] = after - begun;
            } else {
                latencies.record(after - begun);
            }
        }
        stalls.note(done, after - before);
        return after;
    }

    private void keepEarly() {
        for (int index = 0; index < earlyCount; index++) {
            latencies.record(early[index]);
        }
        earlyCount = 0;
        earlyClosed = true;
    }

    /** From 1 to twice the mean, exclusive. SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
    private long drawGap() {
        random += 0x9e37_79b9_7f4a_7c15L;
        long mixed = (random ^ random >>> 30) * 0xbf58_476d_1ce4_e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d0_49bb_1331_11ebL;
        return 1 + Math.unsignedMultiplyHigh(mixed ^ mixed >>> 31, 2 * mean - 1);
    }

    /** Makes the mean gap last 40 to 160 us. True while it grows from 1. Short gaps are no measure. */
    private boolean adapt(long gap, long tookNs) {
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
}
