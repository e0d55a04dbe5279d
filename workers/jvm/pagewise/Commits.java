package pagewise;

import java.nio.ByteBuffer;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** One thread's writer to a log of commits. */
final class Commits extends Work {
    static final int MAX_THREADS = 256;
    /** In place of a time: there is no record left. */
    static final long NONE = Long.MIN_VALUE;

    private final Log log;
    /** The source, with a position of the thread's own. */
    private final ByteBuffer source;

    private Commits(Log log, ByteBuffer source) {
        this.log = log;
        this.source = source;
    }

    static Work[] open(Job job, Target target, ByteBuffer source) {
        Log log = new Log(job, target);
        Work[] commits = new Work[job.threads];
        for (int thread = 0; thread < commits.length; thread++) {
            commits[thread] = new Commits(log, source.duplicate());
        }
        return commits;
    }

    /**
     * Writes the next record, waits until it is on the device, and returns when the write began.
     */
    long commit() throws CallFailure {
        long index = log.take();
        if (index < 0) {
            return NONE;
        }
        long begun = System.nanoTime();
        log.write(source, index);
        bytes += log.recordBytes;
        log.await(index);
        return begun;
    }

    /** Has threads that wait for others return. */
    void fail() {
        log.fail();
    }

    @Override
    long perform(long position, long wanted) {
        throw new IllegalStateException("threads take the next record");
    }

    @Override
    Histogram syncs() {
        return log.target.syncs;
    }

    /**
     * State that the threads of a job share. Those that have written a record wait for a sync that
     * began after it; if none is under way, one of them syncs for all (group commit).
     */
    private static final class Log {
        final Target target;
        final int recordBytes;
        private final int period;
        private final long records;
        private final long slots;
        private final boolean writesSync;
        private final ReentrantLock lock = new ReentrantLock();
        private final Condition changed = lock.newCondition();
        /** The next record that nobody has taken, and how many are committed. */
        private long next;
        private long committed;
        /** Range of records that no sync has begun for. */
        private long unsyncedFrom = Long.MAX_VALUE;
        private long unsyncedTo;
        /** Syncs that began, and that ended. One is under way where they differ. */
        private long begun;
        private long ended;
        private boolean failed;

        Log(Job job, Target target) {
            this.target = target;
            recordBytes = job.recordBytes;
            period = job.sourcePeriod;
            records = job.records;
            slots = target.ringBytes / recordBytes;
            writesSync = target instanceof Target.Synced;
        }

        /**
         * The next record; -1 after the last, or where another thread failed. Those of a pass over
         * the ring wait for all records of the pass before.
         */
        long take() {
            lock.lock();
            try {
                while (next < records && !failed) {
                    if (next - next % slots <= committed) {
                        return next++;
                    }
                    changed.awaitUninterruptibly();
                }
                return -1;
            } finally {
                lock.unlock();
            }
        }

        void write(ByteBuffer source, long index) throws CallFailure {
            target.put(source, (int) (index * recordBytes % period), recordBytes, offset(index));
        }

        private long offset(long index) {
            return index % slots * recordBytes;
        }

        /** Waits for a sync that begins after the record was written, or does it. */
        void await(long index) throws CallFailure {
            lock.lock();
            try {
                if (!writesSync) {
                    unsyncedFrom = Math.min(unsyncedFrom, offset(index));
                    unsyncedTo = Math.max(unsyncedTo, offset(index) + recordBytes);
                    long needed = begun + 1;
                    while (ended < needed && !failed) {
                        if (begun > ended) {
                            changed.awaitUninterruptibly();
                        } else {
                            sync();
                        }
                    }
                }
                committed++;
                if (committed % slots == 0) {
                    changed.signalAll();
                }
            } finally {
                lock.unlock();
            }
        }

        /** Syncs all that was written so far. The lock is held before and after, not meanwhile. */
        private void sync() throws CallFailure {
            long from = unsyncedFrom;
            long to = unsyncedTo;
            unsyncedFrom = Long.MAX_VALUE;
            unsyncedTo = 0;
            begun++;
            lock.unlock();
            long started = System.nanoTime();
            try {
                target.sync(from, to, 0);
            } finally {
                long took = System.nanoTime() - started;
                lock.lock();
                ended++;
                target.syncs.record(took);
                changed.signalAll();
            }
        }

        void fail() {
            lock.lock();
            failed = true;
            changed.signalAll();
            lock.unlock();
        }
    }
}
