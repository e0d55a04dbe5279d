package pagewise;

import java.util.concurrent.BrokenBarrierException;

/** One thread's sample: fields are of the last one taken. */
abstract class Sampling {
    final JobThreads threads;
    final Work work;
    final Histogram latencies = new Histogram();
    long startedNs;
    long endedNs;
    long operations;
    long latencyStartedNs;
    long latencyEndedNs;
    long latencyOperations;
    long bytes;
    long checksum;
    final Stalls stalls;
    /** Reason that there is no sample; null: there is one. */
    CallFailure failure;

    Sampling(JobThreads threads, Work work) {
        this.threads = threads;
        this.work = work;
        stalls = new Stalls(threads.job.policy.stallNs());
    }

    final void take(JobThreads.Order order) {
        latencies.clear();
        stalls.clear();
        operations = latencyOperations = 0;
        failure = null;
        long bytesBefore = work.bytes;
        work.checksum = 0;
        work.begin(order);
        perform(order);
        bytes = work.bytes - bytesBefore;
        checksum = work.checksum;
    }

    abstract void perform(JobThreads.Order order);

    final void rendezvous() {
        try {
            threads.barrier.await();
        } catch (InterruptedException | BrokenBarrierException broken) {
            throw new IllegalStateException(broken);
        }
    }

    final void fail(CallFailure why) {
        failure = failure == null ? why : failure;
    }
}
