package pagewise;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** All of a job; none where the job asks for none. */
final class Heartbeats {
    private final List<Heartbeat> all = new ArrayList<>();

    static Heartbeats start(long intervalNs) throws CallFailure {
        Heartbeats heartbeats = new Heartbeats();
        if (intervalNs > 0) {
            heartbeats.all.add(new SleepBeat("thread", intervalNs));
            heartbeats.all.add(new SleepBeat("virtual-thread", intervalNs));
            String log = System.getProperty("pagewise.safepoint-log", "");
            if (!log.isEmpty()) {
                heartbeats.all.add(new SafepointBeat(intervalNs, log));
            }
        }
        for (Heartbeat heartbeat : heartbeats.all) {
            Thread.Builder builder = heartbeat.kind.equals("virtual-thread")
                    ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
            heartbeat.thread = builder.name("heartbeat-" + heartbeat.kind).start(heartbeat);
        }
        return heartbeats;
    }

    /** Begins to note delays. */
    void begin() {
        all.forEach(Heartbeat::begin);
    }

    /** Notes no more of them. */
    void finish() {
        all.forEach(Heartbeat::finish);
    }

    /** Adds what was noted to an answer. */
    Json addTo(Json answer) {
        if (all.isEmpty()) {
            return answer;
        }
        List<long[]> ends = all.stream().map(heartbeat -> heartbeat.delays.ends()).toList();
        List<long[]> counts = all.stream().map(heartbeat -> heartbeat.delays.counts()).toList();
        return answer.text("heartbeat_kinds", String.join(",", all.stream().map(beat -> beat.kind).toList()))
                .numbers("heartbeat_buckets", ends.stream().mapToLong(some -> some.length).toArray())
                .numbers("heartbeat_ns", ends.stream().flatMapToLong(Arrays::stream).toArray())
                .numbers("heartbeat_counts", counts.stream().flatMapToLong(Arrays::stream).toArray());
    }

    void end() {
        for (Heartbeat heartbeat : all) {
            heartbeat.ended = true;
            LockSupport.unpark(heartbeat.thread);
        }
        for (Heartbeat heartbeat : all) {
            try {
                heartbeat.thread.join();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    /**
     * Beats in intervals and notes by how much each came late, within the regions that it is given.
     */
    private static abstract class Heartbeat implements Runnable {
        final String kind;
        final long intervalNs;
        final Histogram delays = new Histogram();
        /**
         * Guards what follows; a lock and no monitor, which would pin a virtual thread to its
         * carrier.
         */
        private final ReentrantLock lock = new ReentrantLock();
        private boolean noting;
        private long regionNs;
        /** When the beat that is under way should come, and whether its delay is noted already. */
        private long dueNs = Long.MAX_VALUE;
        private boolean noted;
        Thread thread;
        volatile boolean ended;

        Heartbeat(String kind, long intervalNs) {
            this.kind = kind;
            this.intervalNs = intervalNs;
        }

        final void begin() {
            lock.lock();
            delays.clear();
            regionNs = System.nanoTime();
            noting = true;
            lock.unlock();
        }

        /** A beat that is late now counts with what it is late by. */
        final void finish() {
            lock.lock();
            long now = System.nanoTime();
            if (now > dueNs && !noted) {
                delays.record(now - Math.max(dueNs, regionNs));
                noted = true;
            }
            noting = false;
            lock.unlock();
        }

        /** A beat is under way. */
        final void expect(long due) {
            lock.lock();
            dueNs = due;
            noted = false;
            lock.unlock();
        }

        /** It came, late by so much. */
        final void note(long delayNs) {
            lock.lock();
            if (noting && !noted) {
                delays.record(delayNs);
            }
            noted = true;
            lock.unlock();
        }

        /** The part of a delay that lies within the region. */
        final long lateBy(long now, long due) {
            return now - Math.max(due, regionNs);
        }

        /** Sleeps until {@code due}, or the end. */
        final void sleepUntil(long due) {
            for (long left = due - System.nanoTime(); left > 0 && !ended; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
        }
    }

    /**
     * A thread that sleeps. A platform thread sleeps in the kernel, a virtual one until a thread of
     * the JDK has it run by a carrier: 50 to 200 us late, which an idle process shows. A thread
     * that wakes while a safepoint is being reached waits for it, so these delays hold time to
     * safepoint too, where one was requested: by the heartbeat below or by the garbage collector.
     */
    private static final class SleepBeat extends Heartbeat {
        SleepBeat(String kind, long intervalNs) {
            super(kind, intervalNs);
        }

        @Override
        public void run() {
            while (!ended) {
                long due = System.nanoTime() + intervalNs;
                expect(due);
                sleepUntil(due);
                if (!ended) {
                    note(lateBy(System.nanoTime(), due));
                }
            }
        }
    }

    /**
     * Requests safepoints in intervals, and notes how long each took to reach. ThreadMXBean's
     * search for deadlocked threads is a VM operation at a safepoint of the whole VM (FindDeadlocks
     * in the log, JDK 22 to 25), and one of the cheapest; a handshake would stop one thread after
     * the other. The JVM's log says how long it took from the request to the last thread's stop;
     * the line is written before the call returns. Measured threads stop at these too, and wait for
     * the slowest of them.
     */
    private static final class SafepointBeat extends Heartbeat {
        private static final String OPERATION = "Safepoint \"FindDeadlocks\"";
        private static final String REACHING = "Reaching safepoint: ";

        private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        private final FileChannel log;
        private final ByteBuffer text = ByteBuffer.allocate(64 << 10);
        private long position;

        SafepointBeat(long intervalNs, String path) throws CallFailure {
            super("safepoint", intervalNs);
            try {
                log = Files.openChannel(path, StandardOpenOption.READ);
                position = log.size();
                threads.findMonitorDeadlockedThreads();
                if (reached() < 0) {
                    throw new CallFailure("read", 0, path, 0, "the JVM's log of safepoints at " + path + " does not "
                            + "say how long it took to reach the one requested", true);
                }
            } catch (IOException error) {
                throw CallFailure.failed("read", error, path, 0);
            }
        }

        @Override
        public void run() {
            try {
                while (!ended) {
                    sleepUntil(System.nanoTime() + intervalNs);
                    // One that is not reached when the region ends counts with the time since the
                    // request.
                    expect(System.nanoTime());
                    threads.findMonitorDeadlockedThreads();
                    long reachedNs = reached();
                    if (reachedNs >= 0) {
                        note(reachedNs);
                    }
                    expect(Long.MAX_VALUE);
                }
                log.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        /** Time of the safepoint requested last, from new lines of the log, in ns; -1: none. */
        private long reached() throws IOException {
            long reachedNs = -1;
            int received = log.read(text.clear(), position);
            while (received > 0) {
                position += received;
                String lines = new String(text.array(), 0, received, StandardCharsets.ISO_8859_1);
                int end = lines.lastIndexOf('\n') + 1;
                position -= received - end;
                for (String line : lines.substring(0, end).split("\n")) {
                    int at = line.indexOf(REACHING) + REACHING.length();
                    if (line.contains(OPERATION) && at >= REACHING.length()) {
                        reachedNs = Long.parseLong(line.substring(at, line.indexOf(' ', at)));
                    }
                }
                received = end == 0 ? 0 : log.read(text.clear(), position);
            }
            return reachedNs;
        }
    }
}
