package pagewise;

/**
 * Commits: each record is on the device before its thread writes the next one. There are no gaps:
 * each is timed.
 */
final class CommitSampling extends Sampling {
    private final Commits commits;

    CommitSampling(JobThreads threads, Commits commits) {
        super(threads, commits);
        this.commits = commits;
    }

    @Override
    void perform(JobThreads.Order order) {
        rendezvous();
        startedNs = System.nanoTime();
        try {
            measure(order.sampleNs() == 0 ? Long.MAX_VALUE : order.sampleNs());
        } catch (CallFailure thrown) {
            fail(thrown);
            commits.fail();
        } catch (InternalError thrown) {
            fail(CallFailure.fault(thrown, threads.job.path));
            commits.fail();
        }
        endedNs = System.nanoTime();
    }

    private void measure(long sampleNs) throws CallFailure {
        for (long now = startedNs; now - startedNs < sampleNs;) {
            long begun = commits.commit();
            if (begun == Commits.NONE) {
                return;
            }
            now = System.nanoTime();
            latencies.record(now - begun);
            stalls.note(1, now - begun);
            operations++;
        }
    }
}
