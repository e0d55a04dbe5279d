package pagewise;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.StandardOpenOption;

/**
 * Reads by the table, bounded by time. Throughput: {@code elapsed = clock after the last batch -
 * clock before the first}, one clock a batch and none inside. Latencies are the times of batches
 * where all were of one operation, and of a phase of their own elsewhere.
 */
final class TimedSampling extends Sampling {
    private final DeviceBudget budget;
    /** True if any batch had more than one operation: then batch times are no latencies. */
    private boolean batched;

    TimedSampling(JobThreads threads, Work work) throws CallFailure {
        super(threads, work);
        budget = new DeviceBudget(threads.job);
    }

    @Override
    void perform(JobThreads.Order order) {
        budget.begin(threads.job.throughputDeviceBytes);
        batched = false;
        rendezvous();
        try {
            throughput(order);
        } catch (CallFailure thrown) {
            fail(thrown);
        } catch (InternalError thrown) {
            fail(CallFailure.fault(thrown, threads.job.path));
        }
        if (batched) {
            threads.timedPhase.set(true);
        }
        rendezvous();
        // Every thread has reached the line above, so all of them read the same answer.
        if (failure != null || !threads.timedPhase.get() || order.latencyNs() == 0) {
            return;
        }
        latencies.clear();
        try {
            timeOperations(order);
        } catch (CallFailure thrown) {
            fail(thrown);
        } catch (InternalError thrown) {
            fail(CallFailure.fault(thrown, threads.job.path));
        }
    }

    /** Timed region: {@code for each batch: operations; clock}. */
    private void throughput(JobThreads.Order order) throws CallFailure {
        long bound = threads.job.throughputOperations;
        long most = bound == 0 ? Long.MAX_VALUE : bound;
        long batchMinNs = threads.job.policy.batchMinNs();
        long batchMaxNs = threads.job.policy.batchMaxNs();
        long first = order.firstOperation();
        long batch = 1;
        long before = startedNs = System.nanoTime();
        while (true) {
            long done = work.perform(first + operations, Math.min(batch, most - operations));
            long after = System.nanoTime();
            long took = after - before;
            stalls.note(done, took);
            operations += done;
            if (batch == 1) {
                latencies.record(took);
            }
            if (after - startedNs >= order.sampleNs() || operations == most || budget.isSpent(after)) {
                endedNs = after;
                return;
            }
            if (took < batchMinNs && done == batch) {
                batch *= 2;
                batched = true;
            } else if (took > batchMaxNs && batch > 1) {
                batch /= 2;
            }
            before = after;
        }
    }

    /** Timed region: {@code for each operation: operation; clock; note the time}. */
    private void timeOperations(JobThreads.Order order) throws CallFailure {
        long bound = threads.job.maxThreadOperations;
        long most = bound == 0 ? Long.MAX_VALUE : bound - operations;
        long position = order.firstOperation() + operations;
        budget.begin(threads.job.latencyDeviceBytes);
        long before = latencyStartedNs = System.nanoTime();
        while (latencyOperations < most) {
            latencyOperations += work.perform(position + latencyOperations, 1);
            long after = System.nanoTime();
            latencies.record(after - before);
            before = after;
            if (after - latencyStartedNs >= order.latencyNs() || budget.isSpent(after)) {
                break;
            }
        }
        latencyEndedNs = before;
    }

    /**
     * Stops a phase when storage has read enough for this process: a file that fills up is no
     * longer cold.
     */
    private static final class DeviceBudget {
        private static final byte[] KEY = "\nread_bytes: ".getBytes(StandardCharsets.US_ASCII);

        /** /proc/self/io; null where there is no budget. */
        private final FileChannel channel;
        private final ByteBuffer text;
        private final long checkNs;
        private long endBytes;
        private long nextCheckNs;

        DeviceBudget(Job job) throws CallFailure {
            checkNs = job.policy.deviceCheckNs();
            channel = Math.max(job.throughputDeviceBytes, job.latencyDeviceBytes) == 0 ? null
                : Files.openChannel("/proc/self/io", StandardOpenOption.READ);
            text = ByteBuffer.allocateDirect(channel == null ? 0 : 512);
            if (channel != null) {
                job.closeLater(channel::close);
            }
        }

        void begin(long bytes) {
            if (channel != null) {
                long end = readBytes() + bytes;
                endBytes = bytes == 0 || end < 0 ? Long.MAX_VALUE : end;
                nextCheckNs = System.nanoTime() + checkNs;
            }
        }

        boolean isSpent(long nowNs) {
            if (channel == null || nowNs < nextCheckNs) {
                return false;
            }
            nextCheckNs = nowNs + checkNs;
            return readBytes() >= endBytes;
        }

        /** The field {@code read_bytes}, which stands behind others. */
        private long readBytes() {
            int length;
            try {
                length = channel.read(text.clear(), 0);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            int at = 0;
            for (int matched = 0; matched < KEY.length && at < length; at++) {
                matched = text.get(at) == KEY[matched] ? matched + 1 : text.get(at) == KEY[0] ? 1 : 0;
            }
            long value = 0;
            for (; at < length && text.get(at) >= '0' && text.get(at) <= '9'; at++) {
                value = 10 * value + text.get(at) - '0';
            }
            return value;
        }
    }
}
