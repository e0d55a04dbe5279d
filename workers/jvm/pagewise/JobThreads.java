package pagewise;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;

/** The threads, and what they share. */
final class JobThreads {
    final Job job;
    private final Member[] members;
    final CyclicBarrier barrier;
    /** True if any thread found operations too short to time them one by one while it counts. */
    final AtomicBoolean timedPhase = new AtomicBoolean();

    JobThreads(Job job) throws CallFailure {
        this.job = job;
        barrier = new CyclicBarrier(job.work.length);
        members = new Member[job.work.length];
        for (int index = 0; index < members.length; index++) {
            members[index] = new Member(this, index);
            members[index].start();
            members[index].await();
        }
    }

    /** Has every thread do its part, and adds up what they did. */
    Json sample(Request go, Heartbeats heartbeats) throws CallFailure {
        Order order = new Order(go.number("first_operation"), go.bound("sample_ns"), go.bound("latency_ns"),
                go.count("touch_at"));
        timedPhase.set(false);
        heartbeats.begin();
        for (Member member : members) {
            member.order(order);
        }
        for (Member member : members) {
            member.await();
        }
        heartbeats.finish();
        for (Member member : members) {
            if (member.sampling.failure != null) {
                throw member.sampling.failure;
            }
        }
        return heartbeats.addTo(reply());
    }

    private Json reply() {
        long started = Long.MAX_VALUE, ended = 0, timedStarted = Long.MAX_VALUE, timedEnded = 0;
        long operations = 0, timedOperations = 0, bytes = 0, checksum = 0, stalls = 0, stallLongestNs = 0;
        long[] threadOperations = new long[members.length];
        Histogram latencies = members[0].sampling.latencies;
        for (int index = 0; index < members.length; index++) {
            Sampling sampling = members[index].sampling;
            started = Math.min(started, sampling.startedNs);
            ended = Math.max(ended, sampling.endedNs);
            if (sampling.latencyOperations > 0) {
                timedStarted = Math.min(timedStarted, sampling.latencyStartedNs);
                timedEnded = Math.max(timedEnded, sampling.latencyEndedNs);
            }
            operations += sampling.operations;
            timedOperations += sampling.latencyOperations;
            threadOperations[index] = sampling.operations + sampling.latencyOperations;
            bytes += sampling.bytes;
            checksum += sampling.checksum;
            stalls += sampling.stalls.count;
            stallLongestNs = Math.max(stallLongestNs, sampling.stalls.longestNs);
            if (index > 0) {
                latencies.add(sampling.latencies);
            }
        }
        Json reply = new Json().text("type", "sample").number("operations", operations)
                .number("elapsed_ns", ended - started).number("latency_operations", timedOperations)
                .number("latency_elapsed_ns", Math.max(0, timedEnded - timedStarted))
                .numbers("thread_operations", threadOperations).number("bytes", bytes)
                .text("checksum", String.format("%016x", checksum));
        Histogram syncs = members[0].sampling.work.syncs();
        if (syncs != null) {
            reply.numbers("sync_duration_ns", syncs.ends()).numbers("sync_duration_counts", syncs.counts());
        }
        return reply.numbers("latency_ns", latencies.ends()).numbers("latency_counts", latencies.counts())
                .number("stalls", stalls).number("stall_longest_ns", stallLongestNs);
    }

    /** Ends the threads and waits until they are gone. */
    void end() {
        for (Member member : members) {
            member.order(Order.END);
        }
        for (Member member : members) {
            try {
                member.join();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    /** An order to a thread. */
    record Order(long firstOperation, long sampleNs, long latencyNs, int touchAt) {
        static final Order END = new Order(0, 0, 0, 0);
    }

    /** A measured thread. */
    private static final class Member extends Thread {
        private final BlockingQueue<Order> orders = new ArrayBlockingQueue<>(1);
        private final BlockingQueue<Member> done = new ArrayBlockingQueue<>(1);
        final Sampling sampling;

        Member(JobThreads threads, int index) throws CallFailure {
            super("measured-" + index);
            setDaemon(true);
            Work work = threads.job.work[index];
            sampling = threads.job.reads() ? new TimedSampling(threads, work)
                    : threads.job.commits() ? new CommitSampling(threads, (Commits) work) : new FixedSampling(threads, work);
        }

        void order(Order order) {
            orders.add(order);
        }

        void await() {
            try {
                done.take();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }

        @Override
        public void run() {
            try {
                // It is there, with its name: threads are counted before a sample and behind it.
                done.add(this);
                for (Order order = orders.take(); order != Order.END; order = orders.take()) {
                    sampling.take(order);
                    done.add(this);
                }
            } catch (Throwable thrown) {
                // Other threads may wait for this one; the process has no way on.
                Worker.die(thrown);
            }
        }
    }
}
