package pagewise;

/**
 * Work that is an amount: a pass, or records. Batches of a random length alternate with single
 * operations that are timed; clocks leave no gap. What was timed while the mean gap grows is not
 * kept, since it was timed more often.
 */
final class FixedSampling extends Sampling {
    private final long[] early;
    private int earlyCount;
    private boolean earlyClosed;

    private long position;
    private long end;

    FixedSampling(JobThreads threads, Work work) {
        super(threads, work);
        early = new long[2 * threads.job.policy.gapMeasures() + 2];
    }

    @Override
    void perform(JobThreads.Order order) {
        earlyCount = 0;
        earlyClosed = false;
        position = order.firstOperation();
        end = threads.job.writes() ? threads.job.records : position + 1;
        try {
            measure(order.sampleNs() == 0 ? Long.MAX_VALUE : order.sampleNs());
        } catch (CallFailure thrown) {
            fail(thrown);
        } catch (InternalError thrown) {
            fail(CallFailure.fault(thrown, threads.job.path));
        }
        keepEarly();
        operations = position - order.firstOperation();
    }

    /**
     * Timed region: {@code for each gap: operations; clock; one operation; clock}, then what a
     * buffer holds.
     */
    private void measure(long sampleNs) throws CallFailure {
        Gaps gaps = new Gaps(threads.job.gapSeed, threads.job.policy);
        long now = startedNs = System.nanoTime();
        while (position < end && now - startedNs < sampleNs) {
            long gap = gaps.draw();
            long begun = now;
            now = batch(gap, now);
            if (position < end && gaps.adapt(gap, now - begun)) {
                earlyCount = 0;
            }
            if (gaps.isFound() && earlyCount > 0) {
                keepEarly();
            }
            if (position < end) {
                now = batch(1, now);
            }
        }
        work.finish();
        endedNs = System.nanoTime();
    }

    /** Does {@code wanted} operations, fewer at the end. A single one has a clock of its own. */
    private long batch(long wanted, long before) throws CallFailure {
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
}
