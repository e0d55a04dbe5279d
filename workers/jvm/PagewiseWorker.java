import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * pagewise's worker in the JVM: the ways that Java has to read and write a file, measured as workers/PROTOCOL.md says.
 *
 * <p>JDK 22 or newer, standard library only. Run with {@code --enable-native-access=ALL-UNNAMED}.
 *
 * <p>Each way has loops of its own: one for each way of consuming, none with a test of an option inside. A method that
 * several ways shared would be compiled for all of them together, and the slowest would set the pace. Nothing is
 * allocated between two clocks, except where the way itself does (a {@code readLine} makes a string).
 *
 * <p>Sections: conversation, job, crew, sampling, consumption, readers, scanners, writers, heartbeats, the C library,
 * failures, JSON.
 */
public final class PagewiseWorker {
    private static final int PROTOCOL = 5;
    private static final String VERSION = "1.0";

    private static final String READS = "mmap,mmap:random,mmap:sequential,mmap:willneed,mmap:prefetch,"
            + "mmap:random+prefetch,mmap:in-place,mmap:random+in-place,mmap:random+prefetch+in-place,"
            + "pread,pread:direct,filechannel:direct-buffer,filechannel:heap-buffer";
    private static final String SCANS = "mapped-byte-buffer,mmap,mmap:sequential,mmap:in-place,buffered-reader";
    private static final String WRITES = "mmap,mmap:buffer=64KiB";

    /** Bytes of a file that are copied and consumed together in a scan. */
    private static final int PIECE_BYTES = 64 << 10;

    // ---------------------------------------------------------------------------------------------------------------
    // Conversation
    // ---------------------------------------------------------------------------------------------------------------

    private final BufferedReader requests;
    private final OutputStream replies;

    private PagewiseWorker(InputStream requests, OutputStream replies) {
        this.requests = new BufferedReader(new InputStreamReader(requests, StandardCharsets.UTF_8));
        this.replies = replies;
    }

    /** Serves jobs until stdin ends. Whatever is not the failure of a call ends the process with status 1. */
    public static void main(String[] arguments) {
        OutputStream replies = new FileOutputStream(FileDescriptor.out);
        // A stray line on stdout would be taken for an answer.
        System.setOut(System.err);
        Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> die(thrown));
        PagewiseWorker worker = new PagewiseWorker(System.in, replies);
        try {
            worker.converse();
        } catch (Throwable thrown) {
            die(thrown);
        }
        // Threads of a job that failed may still wait; nobody waits for them.
        System.exit(0);
    }

    /** Ends the process at once, the reason on stderr. */
    private static void die(Throwable thrown) {
        try {
            thrown.printStackTrace();
        } finally {
            Runtime.getRuntime().halt(1);
        }
    }

    private void converse() throws IOException {
        say(new Json().text("type", "hello").number("protocol", PROTOCOL).text("worker", "jvm")
                .text("version", VERSION + " on JDK " + Runtime.version()).number("practice", 1)
                .text("random-read", READS).text("sequential-read", READS).text("scan", SCANS)
                .text("append", WRITES).text("fill", WRITES));
        try {
            for (Request open = next(); open != null; open = next()) {
                if (!open.type().equals("open")) {
                    throw new IOException("not of the protocol: '" + open.type() + "' outside a job");
                }
                if (!serve(new Job(open))) {
                    return;
                }
            }
        } catch (CallFailure failure) {
            say(failure.reply());
        } catch (InternalError error) {
            say(CallFailure.fault(error, "").reply());
        }
    }

    /** One job, from {@code open} to {@code closed}. False: stdin ended within it. */
    private boolean serve(Job job) throws IOException, CallFailure {
        job.mapInputs();
        long started = System.nanoTime();
        job.open();
        say(new Json().text("type", "opened").number("setup_ns", System.nanoTime() - started));
        Crew crew = new Crew(job);
        Heartbeats heartbeats = Heartbeats.start(job.heartbeatNs);
        started = System.nanoTime();
        job.warmPageTables();
        say(new Json().text("type", "ready").number("warmup_ns", System.nanoTime() - started));
        for (Request request = next(); request != null; request = next()) {
            switch (request.type()) {
                case "idle" -> say(idle(request, heartbeats));
                case "go" -> say(crew.sample(request, heartbeats));
                case "verify" -> say(job.verify(request.numbers("offsets")));
                case "close" -> {
                    heartbeats.end();
                    say(close(job, crew));
                    return true;
                }
                default -> throw new IOException("not of the protocol: '" + request.type() + "' within a job");
            }
        }
        return false;
    }

    private static Json idle(Request request, Heartbeats heartbeats) {
        heartbeats.begin();
        long end = System.nanoTime() + request.bound("idle_ns");
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
        heartbeats.finish();
        return heartbeats.tell(new Json().text("type", "idled"));
    }

    /** Tear-down: sync, end threads, unmap, close. */
    private static Json close(Job job, Crew crew) throws CallFailure {
        long started = System.nanoTime();
        long syncNs = 0;
        if (job.sync.equals("end")) {
            job.work[0].sync();
            syncNs = System.nanoTime() - started;
        }
        crew.end();
        job.close();
        return new Json().text("type", "closed").number("teardown_ns", System.nanoTime() - started)
                .number("sync_ns", syncNs);
    }

    private Request next() throws IOException {
        String line = requests.readLine();
        return line == null ? null : Request.parse(line);
    }

    private void say(Json reply) throws IOException {
        replies.write(reply.line());
        replies.flush();
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Job
    // ---------------------------------------------------------------------------------------------------------------

    /** What {@code open} asked for, and what was opened for it. */
    private static final class Job {
        final String method;
        final String workload;
        final String path;
        final long fileBytes;
        final long spanBytes;
        final int threads;
        final boolean perThread;
        final String tablePath;
        final long tableReads;
        final int readBytes;
        final int readsPerOp;
        final String consume;
        final int pageBytes;
        final boolean touchLast;
        final boolean dependent;
        final int directFlag;
        final int directAlignment;
        final boolean warm;
        final long maxThreadOperations;
        final long maxDeviceBytes;
        final int recordBytes;
        final long records;
        final String sync;
        final String sourcePath;
        final int sourcePeriod;
        final long gapSeed;
        final String handoverPath;
        final long heartbeatNs;

        /** The word of the method, and its options in the order written. */
        final String word;
        final List<String> options;

        /** What each thread does. */
        Work[] work;
        /** The offset table: zeros until {@code go}, and another one with each; its page tables are full. */
        MemorySegment table;
        /** What records hold: the period and a record more. */
        MemorySegment source;

        /**
         * Holds all mappings of the job. It is closed by another thread than those that use it, so it is shared; a
         * mapping that waited for the garbage collector would keep pages in the cache.
         */
        private final Arena mappings = Arena.ofShared();
        private final List<MemorySegment> fileMappings = new ArrayList<>();
        private final List<Descriptor> descriptors = new ArrayList<>();

        Job(Request open) throws IOException {
            method = open.text("method");
            workload = open.text("workload");
            path = open.text("path");
            fileBytes = open.bound("file_bytes");
            spanBytes = open.bound("span_bytes");
            threads = open.count("threads");
            perThread = open.text("descriptor").equals("per-thread");
            tablePath = open.text("table_path");
            tableReads = open.bound("table_reads");
            readBytes = open.count("read_bytes");
            readsPerOp = open.count("reads_per_op");
            consume = open.text("consume");
            pageBytes = open.count("page_bytes");
            touchLast = open.flag("touch_last");
            dependent = open.flag("dependent");
            directFlag = open.count("direct_flag");
            directAlignment = Math.max(1, open.count("direct_alignment"));
            warm = open.flag("warm_page_tables");
            maxThreadOperations = open.bound("max_thread_operations");
            maxDeviceBytes = open.bound("max_device_bytes");
            recordBytes = open.count("record_bytes");
            records = open.bound("records");
            sync = open.text("sync");
            sourcePath = open.text("source_path");
            sourcePeriod = open.count("source_period");
            gapSeed = open.number("gap_seed");
            handoverPath = open.text("handover_path");
            heartbeatNs = open.bound("heartbeat_ns");
            int colon = method.indexOf(':');
            word = colon < 0 ? method : method.substring(0, colon);
            options = colon < 0 ? List.of() : List.of(method.substring(colon + 1).split("\\+", -1));
        }

        boolean reads() {
            return workload.equals("random-read") || workload.equals("sequential-read");
        }

        boolean writes() {
            return workload.equals("append") || workload.equals("fill");
        }

        boolean has(String option) {
            return options.contains(option);
        }

        /** The table and the source: pagewise's own files, which are no part of the set-up that is timed. */
        void mapInputs() throws CallFailure {
            if (reads()) {
                table = mapInput(tablePath, Math.multiplyExact(tableReads, 8));
            } else if (writes()) {
                source = mapInput(sourcePath, (long) sourcePeriod + recordBytes);
            }
        }

        private MemorySegment mapInput(String input, long bytes) throws CallFailure {
            try (FileChannel channel = openChannel(input, StandardOpenOption.READ)) {
                MemorySegment mapped = map(channel, FileChannel.MapMode.READ_ONLY, input, bytes, mappings);
                mapped.load();
                return mapped;
            } catch (IOException error) {
                throw CallFailure.failed("close", Failures.errno(error), input, 0);
            }
        }

        /** Set-up: what each thread is to do. */
        void open() throws CallFailure {
            if (threads < 1 || !reads() && threads != 1) {
                throw refusal(workload + " is not the work of " + threads + " threads", false);
            }
            switch (workload) {
                case "random-read", "sequential-read" -> work = Readers.open(this);
                case "scan" -> work = new Work[] {Scanners.open(this)};
                case "append", "fill" -> work = new Work[] {Writers.open(this)};
                default -> throw refusal("there is no workload '" + workload + "'", true);
            }
        }

        /** Refuses what the workload does not know, so that nothing is measured under a wrong name. */
        void allow(String... known) throws CallFailure {
            Set<String> seen = new HashSet<>();
            for (String option : options) {
                String name = option.replaceFirst("=.*", "=");
                if (!Arrays.asList(known).contains(name) || !seen.add(name)) {
                    throw unknown();
                }
            }
        }

        CallFailure unknown() {
            return refusal("the JVM's worker has no method '" + method + "' for " + workload, true);
        }

        /** What was asked for cannot be: no call was made. */
        CallFailure refusal(String detail, boolean unavailable) {
            return new CallFailure("open", 0, path, 0, detail, unavailable);
        }

        /** Opens the file; it is closed with the job. */
        FileChannel channel(StandardOpenOption... access) throws CallFailure {
            FileChannel channel = openChannel(path, access);
            descriptors.add(channel::close);
            return channel;
        }

        /** Opens the file by open(2); it is closed with the job. */
        int descriptor(boolean direct) throws CallFailure {
            int descriptor = Libc.open(path, direct ? directFlag : 0, direct ? "open(O_DIRECT)" : "open");
            descriptors.add(() -> Libc.close(descriptor, path));
            return descriptor;
        }

        /** Something to be closed with the job. */
        void closeLater(Descriptor descriptor) {
            descriptors.add(descriptor);
        }

        /** Opens, maps and advises, in the order in which the options are written. */
        MemorySegment mapSpan() throws CallFailure {
            MemorySegment mapped;
            try (FileChannel channel = openChannel(path, StandardOpenOption.READ)) {
                mapped = map(channel, FileChannel.MapMode.READ_ONLY, path, spanBytes, mappings);
            } catch (IOException error) {
                throw CallFailure.failed("close", Failures.errno(error), path, 0);
            }
            fileMappings.add(mapped);
            for (String option : options) {
                switch (option) {
                    case "random" -> Libc.advise(mapped, Libc.MADV_RANDOM, "madvise(MADV_RANDOM)", path);
                    case "sequential" ->
                            Libc.advise(mapped, Libc.MADV_SEQUENTIAL, "madvise(MADV_SEQUENTIAL)", path);
                    case "willneed" -> Libc.advise(mapped, Libc.MADV_WILLNEED, "madvise(MADV_WILLNEED)", path);
                    default -> { }
                }
            }
            return mapped;
        }

        /** Maps the whole file for writing. */
        MemorySegment mapWritable() throws CallFailure {
            MemorySegment mapped;
            try (FileChannel channel = openChannel(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                mapped = map(channel, FileChannel.MapMode.READ_WRITE, path, fileBytes, mappings);
            } catch (IOException error) {
                throw CallFailure.failed("close", Failures.errno(error), path, 0);
            }
            fileMappings.add(mapped);
            return mapped;
        }

        /** Reads one byte of each page of every mapping of the file. */
        void warmPageTables() {
            if (!warm) {
                return;
            }
            long total = 0;
            for (MemorySegment mapped : fileMappings) {
                for (long offset = 0; offset < mapped.byteSize(); offset += pageBytes) {
                    total += mapped.get(ValueLayout.JAVA_BYTE, offset);
                }
            }
            warmed = total;
        }

        /** Keeps the reads of {@link #warmPageTables} alive. */
        volatile long warmed;

        /** Single reads in the way of the method, into the hand-over memory. */
        Json verify(long[] offsets) throws CallFailure, IOException {
            if (!reads()) {
                throw new IOException("not of the protocol: verify of " + workload);
            }
            Reader reader = (Reader) work[0];
            long bytes = Math.multiplyExact((long) offsets.length, readBytes);
            try (Arena arena = Arena.ofConfined();
                    FileChannel channel =
                            openChannel(handoverPath, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                MemorySegment into = map(channel, FileChannel.MapMode.READ_WRITE, handoverPath, bytes, arena);
                for (int index = 0; index < offsets.length; index++) {
                    reader.fetch(offsets[index], into.asSlice((long) index * readBytes, readBytes));
                }
            }
            return new Json().text("type", "verified").number("reads", offsets.length);
        }

        /** Unmaps and closes. No thread uses the mappings any more. */
        void close() throws CallFailure {
            work = null;
            mappings.close();
            for (Descriptor descriptor : descriptors) {
                try {
                    descriptor.close();
                } catch (IOException error) {
                    throw CallFailure.failed("close", Failures.errno(error), path, 0);
                }
            }
        }
    }

    /** Something that the job closes. */
    private interface Descriptor {
        void close() throws IOException, CallFailure;
    }

    private static FileChannel openChannel(String path, StandardOpenOption... access) throws CallFailure {
        try {
            return FileChannel.open(Path.of(path), access);
        } catch (IOException error) {
            throw CallFailure.failed("open", error, path, 0);
        }
    }

    /** Maps the first {@code bytes} of a file, which must be there: a mapping for writing would make it longer. */
    private static MemorySegment map(
            FileChannel channel, FileChannel.MapMode mode, String path, long bytes, Arena arena) throws CallFailure {
        try {
            long size = channel.size();
            if (size < bytes) {
                String detail = path + " has " + size + " bytes, and " + bytes + " of it are to be mapped";
                throw new CallFailure("mmap", 0, path, 0, detail, false);
            }
            return channel.map(mode, 0, bytes, arena);
        } catch (IOException error) {
            throw CallFailure.failed("mmap", error, path, 0);
        }
    }

    /**
     * Memory for the bytes of a read or of records, all zeros. It is not of an arena that is closed: such a one counts
     * the calls that use it, all threads in the same place.
     */
    private static MemorySegment nativeBuffer(long bytes, long alignment) {
        return Arena.ofAuto().allocate(bytes, alignment).fill((byte) 0);
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Crew: the threads of a job, alive from open to close
    // ---------------------------------------------------------------------------------------------------------------

    /** What a thread does between two clocks. A position counts operations from the thread's first one on, laps too. */
    private abstract static class Work {
        /** Sum of the checksums of all that was consumed. */
        long checksum;
        /** Bytes asked for and received, or that reached the file. */
        long bytes;

        /** Does at most {@code wanted} operations from {@code position} on, at least one, and returns how many. */
        abstract long perform(long position, long wanted) throws CallFailure;

        /** Puts what is collected in a buffer into the file. */
        void finish() throws CallFailure { }

        /** Puts what was written on the device. */
        void sync() throws CallFailure { }
    }

    /** The threads, and what they share. */
    private static final class Crew {
        private final Job job;
        private final Member[] members;
        final CyclicBarrier barrier;
        /** Whether any thread found operations too short to time them one by one while it counts. */
        final AtomicBoolean timedPhase = new AtomicBoolean();

        Crew(Job job) throws CallFailure {
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
            Order order = new Order(go.number("first_operation"), go.bound("sample_ns"), go.bound("latency_ns"));
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
            return heartbeats.tell(reply());
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
    }

    /** What a thread is to do. */
    private record Order(long firstOperation, long sampleNs, long latencyNs) {
        static final Order END = new Order(0, 0, 0);
    }

    /** A measured thread. */
    private static final class Member extends Thread {
        private final BlockingQueue<Order> orders = new ArrayBlockingQueue<>(1);
        private final BlockingQueue<Member> done = new ArrayBlockingQueue<>(1);
        final Sampling sampling;

        Member(Crew crew, int index) throws CallFailure {
            super("measured-" + index);
            setDaemon(true);
            Work work = crew.job.work[index];
            sampling = crew.job.reads() ? new TimedSampling(crew, work) : new FixedSampling(crew, work);
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
                die(thrown);
            }
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Sampling: where the clocks are read
    // ---------------------------------------------------------------------------------------------------------------

    /** A batch shorter than this is doubled. */
    private static final long BATCH_MIN_NS = 50_000;
    /** A batch of several operations longer than this is halved. */
    private static final long BATCH_MAX_NS = 200_000;

    /** One thread's sample: fields are of the last one taken. */
    private abstract static class Sampling {
        final Crew crew;
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
        final Stalls stalls = new Stalls();
        /** Why there is no sample; null: there is one. */
        CallFailure failure;

        Sampling(Crew crew, Work work) {
            this.crew = crew;
            this.work = work;
        }

        final void take(Order order) {
            latencies.clear();
            stalls.clear();
            operations = latencyOperations = 0;
            failure = null;
            long bytesBefore = work.bytes;
            work.checksum = 0;
            perform(order);
            bytes = work.bytes - bytesBefore;
            checksum = work.checksum;
        }

        abstract void perform(Order order);

        final void rendezvous() {
            try {
                crew.barrier.await();
            } catch (InterruptedException | BrokenBarrierException broken) {
                throw new IllegalStateException(broken);
            }
        }

        final void fail(CallFailure why) {
            failure = failure == null ? why : failure;
        }
    }

    /**
     * Reads by the table, bounded by time. Throughput: {@code elapsed = clock after the last batch - clock before the
     * first}, one clock a batch and none inside. Latencies are the times of batches where all were of one operation,
     * and of a phase of their own elsewhere.
     */
    private static final class TimedSampling extends Sampling {
        private final DeviceBudget budget;
        /** Whether any batch had more than one operation: then batch times are no latencies. */
        private boolean batched;

        TimedSampling(Crew crew, Work work) throws CallFailure {
            super(crew, work);
            budget = new DeviceBudget(crew.job);
        }

        @Override
        void perform(Order order) {
            budget.begin(crew.job.maxDeviceBytes / 4 * 3);
            batched = false;
            rendezvous();
            try {
                throughput(order);
            } catch (CallFailure thrown) {
                fail(thrown);
            } catch (InternalError thrown) {
                fail(CallFailure.fault(thrown, crew.job.path));
            }
            if (batched) {
                crew.timedPhase.set(true);
            }
            rendezvous();
            // Every thread has reached the line above, so all of them read the same answer.
            if (failure != null || !crew.timedPhase.get() || order.latencyNs == 0) {
                return;
            }
            latencies.clear();
            try {
                timeOperations(order);
            } catch (CallFailure thrown) {
                fail(thrown);
            } catch (InternalError thrown) {
                fail(CallFailure.fault(thrown, crew.job.path));
            }
        }

        /** Timed region: {@code for each batch: operations; clock}. */
        private void throughput(Order order) throws CallFailure {
            long bound = crew.job.maxThreadOperations;
            long most = bound == 0 ? Long.MAX_VALUE : Math.max(1, bound - (bound + 3) / 4);
            long first = order.firstOperation;
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
                if (after - startedNs >= order.sampleNs || operations == most || budget.isSpent(after)) {
                    endedNs = after;
                    return;
                }
                if (took < BATCH_MIN_NS && done == batch) {
                    batch *= 2;
                    batched = true;
                } else if (took > BATCH_MAX_NS && batch > 1) {
                    batch /= 2;
                }
                before = after;
            }
        }

        /** Timed region: {@code for each operation: operation; clock; note the time}. */
        private void timeOperations(Order order) throws CallFailure {
            long bound = crew.job.maxThreadOperations;
            long most = bound == 0 ? Long.MAX_VALUE : bound - operations;
            long position = order.firstOperation + operations;
            budget.begin(crew.job.maxDeviceBytes / 4);
            long before = latencyStartedNs = System.nanoTime();
            while (latencyOperations < most) {
                latencyOperations += work.perform(position + latencyOperations, 1);
                long after = System.nanoTime();
                latencies.record(after - before);
                before = after;
                if (after - latencyStartedNs >= order.latencyNs || budget.isSpent(after)) {
                    break;
                }
            }
            latencyEndedNs = before;
        }
    }

    /** Stops a phase when storage has read enough for this process: a file that fills up is no longer cold. */
    private static final class DeviceBudget {
        /** How often it is looked at: that costs a system call. */
        private static final long CHECK_NS = 1_000_000;
        private static final byte[] KEY = "\nread_bytes: ".getBytes(StandardCharsets.US_ASCII);

        /** /proc/self/io; null where there is no budget. */
        private final FileChannel channel;
        private final ByteBuffer text;
        private long endBytes;
        private long nextCheckNs;

        DeviceBudget(Job job) throws CallFailure {
            channel = job.maxDeviceBytes == 0 ? null : openChannel("/proc/self/io", StandardOpenOption.READ);
            text = ByteBuffer.allocateDirect(channel == null ? 0 : 512);
            if (channel != null) {
                job.closeLater(channel::close);
            }
        }

        void begin(long bytes) {
            if (channel != null) {
                long end = readBytes() + bytes;
                endBytes = end < 0 ? Long.MAX_VALUE : end;
                nextCheckNs = System.nanoTime() + CHECK_NS;
            }
        }

        boolean isSpent(long nowNs) {
            if (channel == null || nowNs < nextCheckNs) {
                return false;
            }
            nextCheckNs = nowNs + CHECK_NS;
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

    /**
     * Work that is an amount: a pass, or records. Batches of a random length alternate with single operations that are
     * timed; clocks leave no gap. What was timed while the mean gap grows is not kept, since it was timed more often.
     */
    private static final class FixedSampling extends Sampling {
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
        void perform(Order order) {
            earlyCount = steady = 0;
            earlyClosed = false;
            random = crew.job.gapSeed;
            mean = 1;
            position = order.firstOperation;
            end = crew.job.writes() ? crew.job.records : position + 1;
            try {
                measure(order.sampleNs == 0 ? Long.MAX_VALUE : order.sampleNs);
            } catch (CallFailure thrown) {
                fail(thrown);
            } catch (InternalError thrown) {
                fail(CallFailure.fault(thrown, crew.job.path));
            }
            keepEarly();
            operations = position - order.firstOperation;
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

    /**
     * Batches that took over 1 ms more, and over twice as much, as their operations take on average. A stalled one counts
     * in the average as what it should have taken, else one long stall would hide those after it.
     */
    private static final class Stalls {
        /** What a batch must take beyond its operations' average to be called stalled. */
        private static final long STALL_NS = 1_000_000;

        long count;
        /** The longest, less the average of the other operations in its batch. */
        long longestNs;
        /** What operations take without stalls, and so many of them; none yet: 0. */
        private long calmOperations;
        private long calmNs;
        /** The first batch, until there is another to compare it with; none: 0. */
        private long firstOperations;
        private long firstNs;

        void clear() {
            count = longestNs = calmOperations = calmNs = firstOperations = firstNs = 0;
        }

        void note(long operations, long tookNs) {
            if (tookNs < STALL_NS && calmOperations > 0) {
                calmOperations += operations;
                calmNs += tookNs;
            } else {
                judge(operations, tookNs);
            }
        }

        /** Of the first two batches the one with the faster operations is the measure of the other. */
        private void judge(long operations, long tookNs) {
            if (calmOperations > 0) {
                compare(operations, tookNs);
            } else if (firstOperations == 0) {
                firstOperations = operations;
                firstNs = tookNs;
            } else if (pace(firstOperations, firstNs, 1) <= pace(operations, tookNs, 1)) {
                calmOperations = firstOperations;
                calmNs = firstNs;
                compare(operations, tookNs);
            } else {
                calmOperations = operations;
                calmNs = tookNs;
                compare(firstOperations, firstNs);
            }
        }

        private void compare(long operations, long tookNs) {
            long dueNs = pace(calmOperations, calmNs, operations);
            long countedNs = tookNs;
            if (tookNs > dueNs + Math.max(dueNs, STALL_NS)) {
                count++;
                longestNs = Math.max(longestNs, tookNs - pace(calmOperations, calmNs, operations - 1));
                countedNs = dueNs;
            }
            calmOperations += operations;
            calmNs += countedNs;
        }

        /** What {@code operations} take where so many took so long. */
        static long pace(long of, long tookNs, long operations) {
            return (long) ((double) tookNs * operations / of);
        }
    }

    /**
     * How often which time was seen. Values below 256 have buckets of their own; above, a power of two is divided into
     * 128, so that no bucket is wider than 1/128 of its value.
     */
    private static final class Histogram {
        private static final int BUCKETS = 256 + 55 * 128;
        private final long[] counts = new long[BUCKETS];

        void clear() {
            Arrays.fill(counts, 0);
        }

        void record(long value) {
            long known = Math.max(value, 0);
            int shift = Math.max(56 - Long.numberOfLeadingZeros(known), 0);
            counts[shift * 128 + (int) (known >>> shift)]++;
        }

        void add(Histogram other) {
            for (int index = 0; index < BUCKETS; index++) {
                counts[index] += other.counts[index];
            }
        }

        /** Upper ends of the buckets that hold something, ascending. */
        long[] ends() {
            return held().mapToLong(Histogram::end).toArray();
        }

        /** How much each of them holds. */
        long[] counts() {
            return held().mapToLong(index -> counts[index]).toArray();
        }

        private java.util.stream.IntStream held() {
            return java.util.stream.IntStream.range(0, BUCKETS).filter(index -> counts[index] > 0);
        }

        private static long end(int index) {
            int shift = Math.max(index / 128 - 1, 0);
            return ((long) (index - shift * 128) + 1 << shift) - 1;
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Consumption: words are little-endian; one that is cut short is padded with zeros
    // ---------------------------------------------------------------------------------------------------------------

    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong WORD_LAYOUT =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final byte NEWLINE = '\n';
    private static final long NEWLINES = 0x0a0a_0a0a_0a0a_0a0aL;
    private static final long LOW_BITS = 0x7f7f_7f7f_7f7f_7f7fL;

    /** How many of 8 bytes are newlines: XOR makes them zero, and only a zero byte has no bit after the rest. */
    private static int newlines(long word) {
        long others = word ^ NEWLINES;
        return Long.bitCount(~((others & LOW_BITS) + LOW_BITS | others | LOW_BITS));
    }

    /** Consumption of a byte array. */
    private static final class Heap {
        static long word(byte[] bytes, int at) {
            return (long) WORD.get(bytes, at);
        }

        static long touch(byte[] bytes, int len, int pageBytes, boolean last) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += pageBytes) {
                total += word(bytes, at);
            }
            if (at < len) {
                total += tail(bytes, at, len);
            }
            if (last) {
                total += len >= 8 ? word(bytes, len - 8) : tail(bytes, 0, len);
            }
            return total;
        }

        static long sum(byte[] bytes, int len) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += 8) {
                total += word(bytes, at);
            }
            return at < len ? total + tail(bytes, at, len) : total;
        }

        static long lines(byte[] bytes, int len) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += 8) {
                total += newlines(word(bytes, at));
            }
            for (; at < len; at++) {
                total += bytes[at] == NEWLINE ? 1 : 0;
            }
            return total;
        }

        private static long tail(byte[] bytes, int at, int len) {
            long word = 0;
            for (int index = at; index < len; index++) {
                word |= (bytes[index] & 0xffL) << 8 * (index - at);
            }
            return word;
        }
    }

    /** Consumption of {@code len} bytes from {@code base} on of a mapping or of native memory. */
    private static final class Native {
        static long word(MemorySegment bytes, long at) {
            return bytes.get(WORD_LAYOUT, at);
        }

        static long touch(MemorySegment bytes, long base, int len, int pageBytes, boolean last) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += pageBytes) {
                total += word(bytes, base + at);
            }
            if (at < len) {
                total += tail(bytes, base + at, base + len);
            }
            if (last) {
                total += len >= 8 ? word(bytes, base + len - 8) : tail(bytes, base, base + len);
            }
            return total;
        }

        static long sum(MemorySegment bytes, long base, int len) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += 8) {
                total += word(bytes, base + at);
            }
            return at < len ? total + tail(bytes, base + at, base + len) : total;
        }

        static long lines(MemorySegment bytes, long base, int len) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += 8) {
                total += newlines(word(bytes, base + at));
            }
            for (; at < len; at++) {
                total += bytes.get(ValueLayout.JAVA_BYTE, base + at) == NEWLINE ? 1 : 0;
            }
            return total;
        }

        private static long tail(MemorySegment bytes, long at, long end) {
            long word = 0;
            for (long index = at; index < end; index++) {
                word |= (bytes.get(ValueLayout.JAVA_BYTE, index) & 0xffL) << 8 * (index - at);
            }
            return word;
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Readers: by the offset table
    // ---------------------------------------------------------------------------------------------------------------

    /** Makes the readers of a job, one for each thread. */
    private static final class Readers {
        static Work[] open(Job job) throws CallFailure {
            checkOptions(job);
            if (job.readBytes < 1 || job.readBytes > 1 << 30 || job.readsPerOp < 1 || job.pageBytes < 8) {
                throw job.refusal("reads of " + job.readBytes + " bytes, " + job.readsPerOp + " to an operation and "
                        + "pages of " + job.pageBytes + " bytes are not known here", false);
            }
            if (!job.consume.equals("touch") && !job.consume.equals("sum")) {
                throw job.refusal("there is no '" + job.consume + "' of reads by the JVM's worker", true);
            }
            if (job.tableReads / job.readsPerOp / job.threads == 0) {
                throw job.refusal("the table has no operation for each thread", false);
            }
            if (job.dependent && (job.readBytes < 8 || job.has("prefetch"))) {
                throw job.refusal(job.method + " cannot do dependent reads of " + job.readBytes + " bytes: a read of 8 "
                        + "bytes or more tells where the next one is, and none is known ahead", true);
            }
            Reader[] readers = new Reader[job.threads];
            for (int thread = 0; thread < readers.length; thread++) {
                Reader like = thread > 0 && !job.perThread ? readers[0] : null;
                readers[thread] = open(job, new Part(job, thread), like);
            }
            return readers;
        }

        private static void checkOptions(Job job) throws CallFailure {
            switch (job.word) {
                case "mmap" -> job.allow("random", "sequential", "willneed", "prefetch", "in-place");
                case "pread" -> job.allow("direct");
                case "filechannel" -> {
                    job.allow("direct-buffer", "heap-buffer");
                    if (job.options.size() != 1) {
                        throw job.unknown();
                    }
                }
                default -> throw job.unknown();
            }
        }

        /** {@code like}: the reader whose descriptor or mapping is to be used too; null: one of its own. */
        private static Reader open(Job job, Part part, Reader like) throws CallFailure {
            if (job.word.equals("mmap")) {
                MemorySegment file = like != null ? like.file() : job.mapSpan();
                Reader reader = job.has("in-place") ? new InPlace(part, file) : new Copied(part, file);
                return job.has("prefetch") ? new Prefetched(part, reader) : reader;
            }
            if (job.word.equals("pread")) {
                boolean direct = job.has("direct");
                int descriptor = like != null ? like.descriptor() : job.descriptor(direct);
                return direct ? new PreadDirect(part, descriptor) : new Pread(part, descriptor);
            }
            FileChannel channel = like != null ? like.channel() : job.channel(StandardOpenOption.READ);
            return job.has("heap-buffer") ? new ChannelHeap(part, channel) : new ChannelDirect(part, channel);
        }
    }

    /** A thread's part of the table, and what is to be known of a read. */
    private static final class Part {
        final Job job;
        final MemorySegment table;
        /** Where in the table it begins, and how many operations it has. */
        final long firstByte;
        final long operations;
        /** Bytes of the table that make an operation. */
        final long operationBytes;
        /** The last offset from which a read fits into the span. */
        final long lastOffset;

        Part(Job job, int thread) {
            this.job = job;
            table = job.table;
            operationBytes = 8L * job.readsPerOp;
            operations = job.tableReads / job.readsPerOp / job.threads;
            firstByte = thread * operations * operationBytes;
            lastOffset = Math.max(0, job.spanBytes - job.readBytes);
        }

        /** Where the read is that follows from the data of the one before it. */
        long follow(long entry, long link) throws CallFailure {
            long offset = table.get(WORD_LAYOUT, entry) ^ link;
            if (Long.compareUnsigned(offset, lastOffset) > 0) {
                throw new CallFailure("dependent read", 0, job.path, offset, "a dependent read of " + job.path
                        + " led to offset " + Long.toUnsignedString(offset) + ", beyond the " + job.spanBytes
                        + " bytes that are read: its data are not those that the offset table was made of", false);
            }
            return offset;
        }
    }

    /** A way to read at an offset. Entries are byte offsets in the table. */
    private abstract static class Reader extends Work {
        final Part part;
        final MemorySegment table;
        final int readBytes;
        final int pageBytes;
        final boolean last;
        private final boolean touches;
        private final boolean dependent;

        Reader(Part part) {
            this.part = part;
            table = part.table;
            readBytes = part.job.readBytes;
            pageBytes = part.job.pageBytes;
            last = part.job.touchLast;
            touches = part.job.consume.equals("touch");
            dependent = part.job.dependent;
        }

        /** A batch never goes across the end of the part. */
        @Override
        final long perform(long position, long wanted) throws CallFailure {
            long lap = Long.remainderUnsigned(position, part.operations);
            long done = Math.min(wanted, part.operations - lap);
            long from = part.firstByte + lap * part.operationBytes;
            checksum += read(from, from + done * part.operationBytes);
            bytes += done * part.job.readsPerOp * readBytes;
            return done;
        }

        /** What the checksum of the read at an entry is multiplied by: 2 * its place in the table + 1. */
        static long weight(long entry) {
            return entry / 4 + 1;
        }

        /** Reads whole operations and returns the weighted sum of the checksums of their reads. */
        long read(long from, long to) throws CallFailure {
            if (dependent) {
                return touches ? touchDependent(from, to) : sumDependent(from, to);
            }
            return touches ? touch(from, to) : sum(from, to);
        }

        abstract long touch(long from, long to) throws CallFailure;

        abstract long sum(long from, long to) throws CallFailure;

        abstract long touchDependent(long from, long to) throws CallFailure;

        abstract long sumDependent(long from, long to) throws CallFailure;

        /** One read, outside any clock. */
        abstract void fetch(long offset, MemorySegment into) throws CallFailure;

        /** The mapping, descriptor or channel, for other threads that share it. */
        MemorySegment file() {
            throw new UnsupportedOperationException("no mapping");
        }

        int descriptor() {
            throw new UnsupportedOperationException("no descriptor");
        }

        FileChannel channel() {
            throw new UnsupportedOperationException("no channel");
        }
    }

    /** {@code mmap}: bytes of a MemorySegment are copied to a byte array. */
    private static final class Copied extends Reader {
        private final MemorySegment file;
        private final byte[] buffer;

        Copied(Part part, MemorySegment file) {
            super(part);
            this.file = file;
            buffer = new byte[readBytes];
        }

        private void copy(long offset) {
            MemorySegment.copy(file, ValueLayout.JAVA_BYTE, offset, buffer, 0, buffer.length);
        }

        @Override
        long touch(long from, long to) {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                copy(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Heap.touch(buffer, buffer.length, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                copy(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Heap.sum(buffer, buffer.length);
            }
            return total;
        }

        @Override
        long touchDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    copy(part.follow(entry, link));
                    link = Heap.word(buffer, 0);
                    total += weight(entry) * Heap.touch(buffer, buffer.length, pageBytes, last);
                }
            }
            return total;
        }

        @Override
        long sumDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    copy(part.follow(entry, link));
                    link = Heap.word(buffer, 0);
                    total += weight(entry) * Heap.sum(buffer, buffer.length);
                }
            }
            return total;
        }

        @Override
        void fetch(long offset, MemorySegment into) {
            copy(offset);
            MemorySegment.copy(buffer, 0, into, ValueLayout.JAVA_BYTE, 0, buffer.length);
        }

        @Override
        MemorySegment file() {
            return file;
        }
    }

    /** {@code mmap:in-place}: bytes are consumed in the mapping. */
    private static final class InPlace extends Reader {
        private final MemorySegment file;

        InPlace(Part part, MemorySegment file) {
            super(part);
            this.file = file;
        }

        @Override
        long touch(long from, long to) {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                total += weight(entry) * Native.touch(file, table.get(WORD_LAYOUT, entry), readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                total += weight(entry) * Native.sum(file, table.get(WORD_LAYOUT, entry), readBytes);
            }
            return total;
        }

        @Override
        long touchDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    long offset = part.follow(entry, link);
                    link = Native.word(file, offset);
                    total += weight(entry) * Native.touch(file, offset, readBytes, pageBytes, last);
                }
            }
            return total;
        }

        @Override
        long sumDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    long offset = part.follow(entry, link);
                    link = Native.word(file, offset);
                    total += weight(entry) * Native.sum(file, offset, readBytes);
                }
            }
            return total;
        }

        @Override
        void fetch(long offset, MemorySegment into) {
            MemorySegment.copy(file, offset, into, 0, readBytes);
        }

        @Override
        MemorySegment file() {
            return file;
        }
    }

    /** {@code prefetch}: MADV_WILLNEED of all ranges of an operation before its first read. */
    private static final class Prefetched extends Reader {
        private final Reader reader;
        private final MemorySegment state = Libc.state();

        Prefetched(Part part, Reader reader) {
            super(part);
            this.reader = reader;
        }

        @Override
        long read(long from, long to) throws CallFailure {
            long total = 0;
            for (long operation = from; operation < to; operation += part.operationBytes) {
                long end = operation + part.operationBytes;
                for (long entry = operation; entry < end; entry += 8) {
                    prefetch(table.get(WORD_LAYOUT, entry));
                }
                total += reader.read(operation, end);
            }
            return total;
        }

        /** Aligned outwards to whole pages. */
        private void prefetch(long offset) throws CallFailure {
            long begin = offset - offset % pageBytes;
            long address = reader.file().address() + begin;
            if (Libc.madvise(state, address, offset + readBytes - begin, Libc.MADV_WILLNEED) != 0) {
                throw CallFailure.failed("madvise(MADV_WILLNEED)", Libc.errno(state), part.job.path, offset);
            }
        }

        @Override
        long touch(long from, long to) throws CallFailure {
            return reader.touch(from, to);
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            return reader.sum(from, to);
        }

        @Override
        long touchDependent(long from, long to) throws CallFailure {
            return reader.touchDependent(from, to);
        }

        @Override
        long sumDependent(long from, long to) throws CallFailure {
            return reader.sumDependent(from, to);
        }

        @Override
        void fetch(long offset, MemorySegment into) throws CallFailure {
            reader.fetch(offset, into);
        }

        @Override
        MemorySegment file() {
            return reader.file();
        }
    }

    /**
     * {@code pread}: pread(2) by the foreign-function interface into native memory. The call leaves the Java state, as
     * one that may block must: a critical one would hold up every safepoint.
     */
    private static final class Pread extends Reader {
        private final int descriptor;
        private final MemorySegment buffer;
        private final MemorySegment state = Libc.state();

        Pread(Part part, int descriptor) {
            super(part);
            this.descriptor = descriptor;
            buffer = nativeBuffer(readBytes, pageBytes);
        }

        private void call(long offset) throws CallFailure {
            long received = Libc.pread(state, descriptor, buffer, readBytes, offset);
            if (received != readBytes) {
                throw CallFailure.read("pread", state, part.job.path, offset, readBytes, received);
            }
        }

        @Override
        long touch(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Native.touch(buffer, 0, readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Native.sum(buffer, 0, readBytes);
            }
            return total;
        }

        @Override
        long touchDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    call(part.follow(entry, link));
                    link = Native.word(buffer, 0);
                    total += weight(entry) * Native.touch(buffer, 0, readBytes, pageBytes, last);
                }
            }
            return total;
        }

        @Override
        long sumDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    call(part.follow(entry, link));
                    link = Native.word(buffer, 0);
                    total += weight(entry) * Native.sum(buffer, 0, readBytes);
                }
            }
            return total;
        }

        @Override
        void fetch(long offset, MemorySegment into) throws CallFailure {
            call(offset);
            MemorySegment.copy(buffer, 0, into, 0, readBytes);
        }

        @Override
        int descriptor() {
            return descriptor;
        }
    }

    /** {@code pread:direct}: the same with O_DIRECT, reads widened to its alignment. */
    private static final class PreadDirect extends Reader {
        private final int descriptor;
        private final long alignment;
        private final long fileBytes;
        private final MemorySegment buffer;
        private final MemorySegment state = Libc.state();

        PreadDirect(Part part, int descriptor) throws CallFailure {
            super(part);
            this.descriptor = descriptor;
            alignment = part.job.directAlignment;
            fileBytes = part.job.fileBytes;
            if (Long.bitCount(alignment) != 1) {
                throw part.job.refusal("an alignment of " + alignment + " bytes is no power of two", false);
            }
            long widest = (readBytes + alignment - 1) / alignment * alignment + alignment;
            buffer = nativeBuffer(widest, Math.max(alignment, pageBytes));
            // O_DIRECT may be accepted at open and refused at the first transfer.
            if (Libc.pread(state, descriptor, buffer, alignment, 0) < 0) {
                throw CallFailure.refused("pread(O_DIRECT)", Libc.errno(state), part.job.path);
            }
        }

        /** Returns where in the buffer the bytes begin that were asked for. */
        private long call(long offset) throws CallFailure {
            long start = offset & -alignment;
            long end = offset + readBytes + alignment - 1 & -alignment;
            long expected = Math.min(end, fileBytes) - start;
            long received = Libc.pread(state, descriptor, buffer, end - start, start);
            if (received != expected) {
                throw CallFailure.read("pread(O_DIRECT)", state, part.job.path, start, expected, received);
            }
            return offset - start;
        }

        @Override
        long touch(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                long inner = call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Native.touch(buffer, inner, readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                long inner = call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Native.sum(buffer, inner, readBytes);
            }
            return total;
        }

        @Override
        long touchDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    long inner = call(part.follow(entry, link));
                    link = Native.word(buffer, inner);
                    total += weight(entry) * Native.touch(buffer, inner, readBytes, pageBytes, last);
                }
            }
            return total;
        }

        @Override
        long sumDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    long inner = call(part.follow(entry, link));
                    link = Native.word(buffer, inner);
                    total += weight(entry) * Native.sum(buffer, inner, readBytes);
                }
            }
            return total;
        }

        @Override
        void fetch(long offset, MemorySegment into) throws CallFailure {
            MemorySegment.copy(buffer, call(offset), into, 0, readBytes);
        }

        @Override
        int descriptor() {
            return descriptor;
        }
    }

    /** {@code filechannel:direct-buffer}: FileChannel.read at a position into memory outside the heap. */
    private static final class ChannelDirect extends Reader {
        private final FileChannel channel;
        private final ByteBuffer buffer;
        private final MemorySegment memory;

        ChannelDirect(Part part, FileChannel channel) {
            super(part);
            this.channel = channel;
            buffer = ByteBuffer.allocateDirect(readBytes);
            memory = MemorySegment.ofBuffer(buffer);
        }

        private void call(long offset) throws CallFailure {
            int received;
            try {
                received = channel.read(buffer.clear(), offset);
            } catch (IOException error) {
                throw CallFailure.failed("pread", error, part.job.path, offset);
            }
            if (received != readBytes) {
                throw CallFailure.shortRead("pread", part.job.path, offset, readBytes, received);
            }
        }

        @Override
        long touch(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Native.touch(memory, 0, readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Native.sum(memory, 0, readBytes);
            }
            return total;
        }

        @Override
        long touchDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    call(part.follow(entry, link));
                    link = Native.word(memory, 0);
                    total += weight(entry) * Native.touch(memory, 0, readBytes, pageBytes, last);
                }
            }
            return total;
        }

        @Override
        long sumDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    call(part.follow(entry, link));
                    link = Native.word(memory, 0);
                    total += weight(entry) * Native.sum(memory, 0, readBytes);
                }
            }
            return total;
        }

        @Override
        void fetch(long offset, MemorySegment into) throws CallFailure {
            call(offset);
            MemorySegment.copy(memory, 0, into, 0, readBytes);
        }

        @Override
        FileChannel channel() {
            return channel;
        }
    }

    /** {@code filechannel:heap-buffer}: the same into a byte array, by way of the thread's own native buffer. */
    private static final class ChannelHeap extends Reader {
        private final FileChannel channel;
        private final byte[] bytes;
        private final ByteBuffer buffer;

        ChannelHeap(Part part, FileChannel channel) {
            super(part);
            this.channel = channel;
            bytes = new byte[readBytes];
            buffer = ByteBuffer.wrap(bytes);
        }

        private void call(long offset) throws CallFailure {
            int received;
            try {
                received = channel.read(buffer.clear(), offset);
            } catch (IOException error) {
                throw CallFailure.failed("pread", error, part.job.path, offset);
            }
            if (received != bytes.length) {
                throw CallFailure.shortRead("pread", part.job.path, offset, readBytes, received);
            }
        }

        @Override
        long touch(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Heap.touch(bytes, bytes.length, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(WORD_LAYOUT, entry));
                total += weight(entry) * Heap.sum(bytes, bytes.length);
            }
            return total;
        }

        @Override
        long touchDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    call(part.follow(entry, link));
                    link = Heap.word(bytes, 0);
                    total += weight(entry) * Heap.touch(bytes, bytes.length, pageBytes, last);
                }
            }
            return total;
        }

        @Override
        long sumDependent(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to;) {
                long link = 0;
                for (long end = entry + part.operationBytes; entry < end; entry += 8) {
                    call(part.follow(entry, link));
                    link = Heap.word(bytes, 0);
                    total += weight(entry) * Heap.sum(bytes, bytes.length);
                }
            }
            return total;
        }

        @Override
        void fetch(long offset, MemorySegment into) throws CallFailure {
            call(offset);
            MemorySegment.copy(bytes, 0, into, ValueLayout.JAVA_BYTE, 0, bytes.length);
        }

        @Override
        FileChannel channel() {
            return channel;
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Scanners: all of the span, once, front to back
    // ---------------------------------------------------------------------------------------------------------------

    /** Makes the scanner of a job. */
    private static final class Scanners {
        static Work open(Job job) throws CallFailure {
            switch (job.word) {
                case "mmap" -> job.allow("random", "sequential", "willneed", "in-place");
                case "mapped-byte-buffer", "buffered-reader" -> job.allow();
                default -> throw job.unknown();
            }
            boolean words = job.consume.equals("touch") || job.consume.equals("sum");
            if (!words && !job.consume.equals("lines") || words && job.word.equals("buffered-reader")) {
                throw job.refusal("there is no '" + job.consume + "' of a scan by " + job.method, true);
            }
            if (job.consume.equals("touch") && (job.pageBytes < 8 || PIECE_BYTES % job.pageBytes != 0)) {
                throw job.refusal("pieces of " + PIECE_BYTES + " bytes are no whole pages of " + job.pageBytes, true);
            }
            return switch (job.word) {
                case "mmap" -> job.has("in-place") ? new InPlaceScan(job) : new CopiedScan(job);
                case "mapped-byte-buffer" -> new ByteBufferScan(job);
                default -> new LineScan(job);
            };
        }
    }

    /** A way to scan. A pass goes by pieces of whole pages, so that checksums do not depend on where pieces end. */
    private abstract static class Scanner extends Work {
        final long spanBytes;
        final int pageBytes;
        private final String consume;

        Scanner(Job job) {
            spanBytes = job.spanBytes;
            pageBytes = job.pageBytes;
            consume = job.consume;
        }

        @Override
        final long perform(long position, long wanted) throws CallFailure {
            checksum += switch (consume) {
                case "touch" -> touch();
                case "sum" -> sum();
                default -> lines();
            };
            bytes += spanBytes;
            return 1;
        }

        abstract long touch();

        abstract long sum();

        abstract long lines() throws CallFailure;

        final int pieceAt(long offset) {
            return (int) Math.min(PIECE_BYTES, spanBytes - offset);
        }
    }

    /** {@code mmap}: pieces of the mapping are copied to a byte array. */
    private static final class CopiedScan extends Scanner {
        private final MemorySegment file;
        private final byte[] buffer = new byte[PIECE_BYTES];

        CopiedScan(Job job) throws CallFailure {
            super(job);
            file = job.mapSpan();
        }

        private int copy(long offset) {
            int len = pieceAt(offset);
            MemorySegment.copy(file, ValueLayout.JAVA_BYTE, offset, buffer, 0, len);
            return len;
        }

        @Override
        long touch() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
                total += Heap.touch(buffer, copy(offset), pageBytes, false);
            }
            return total;
        }

        @Override
        long sum() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
                total += Heap.sum(buffer, copy(offset));
            }
            return total;
        }

        @Override
        long lines() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
                total += Heap.lines(buffer, copy(offset));
            }
            return total;
        }
    }

    /** {@code mmap:in-place}: consumed in the mapping. */
    private static final class InPlaceScan extends Scanner {
        private final MemorySegment file;

        InPlaceScan(Job job) throws CallFailure {
            super(job);
            file = job.mapSpan();
        }

        @Override
        long touch() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
                total += Native.touch(file, offset, pieceAt(offset), pageBytes, false);
            }
            return total;
        }

        @Override
        long sum() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
                total += Native.sum(file, offset, pieceAt(offset));
            }
            return total;
        }

        @Override
        long lines() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += PIECE_BYTES) {
                total += Native.lines(file, offset, pieceAt(offset));
            }
            return total;
        }
    }

    /**
     * {@code mapped-byte-buffer}: byte by byte with {@code get(index)} for lines, words with {@code getLong(index)}.
     * Buffers are views of one mapping, since a MappedByteBuffer of its own is unmapped by the garbage collector; they
     * hold at most 2^31-1 bytes, so 1 GiB each. Loops end every 64 KiB, where a safepoint may be reached.
     */
    private static final class ByteBufferScan extends Scanner {
        private static final long BUFFER_BYTES = 1 << 30;
        private final ByteBuffer[] buffers;

        ByteBufferScan(Job job) throws CallFailure {
            super(job);
            MemorySegment file = job.mapSpan();
            buffers = new ByteBuffer[(int) ((spanBytes + BUFFER_BYTES - 1) / BUFFER_BYTES)];
            for (int index = 0; index < buffers.length; index++) {
                long start = index * BUFFER_BYTES;
                MemorySegment some = file.asSlice(start, Math.min(BUFFER_BYTES, spanBytes - start));
                buffers[index] = some.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
            }
        }

        @Override
        long touch() {
            long total = 0;
            for (ByteBuffer buffer : buffers) {
                for (int piece = 0; piece < buffer.limit(); piece += PIECE_BYTES) {
                    total += touch(buffer, piece, Math.min(PIECE_BYTES, buffer.limit() - piece));
                }
            }
            return total;
        }

        @Override
        long sum() {
            long total = 0;
            for (ByteBuffer buffer : buffers) {
                for (int piece = 0; piece < buffer.limit(); piece += PIECE_BYTES) {
                    total += sum(buffer, piece, Math.min(PIECE_BYTES, buffer.limit() - piece));
                }
            }
            return total;
        }

        @Override
        long lines() {
            long total = 0;
            for (ByteBuffer buffer : buffers) {
                for (int piece = 0; piece < buffer.limit(); piece += PIECE_BYTES) {
                    total += lines(buffer, piece, Math.min(PIECE_BYTES, buffer.limit() - piece));
                }
            }
            return total;
        }

        private long touch(ByteBuffer buffer, int base, int len) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += pageBytes) {
                total += buffer.getLong(base + at);
            }
            return at < len ? total + tail(buffer, base + at, base + len) : total;
        }

        private static long sum(ByteBuffer buffer, int base, int len) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += 8) {
                total += buffer.getLong(base + at);
            }
            return at < len ? total + tail(buffer, base + at, base + len) : total;
        }

        private static long lines(ByteBuffer buffer, int base, int len) {
            long total = 0;
            for (int at = base; at < base + len; at++) {
                total += buffer.get(at) == NEWLINE ? 1 : 0;
            }
            return total;
        }

        private static long tail(ByteBuffer buffer, int at, int end) {
            long word = 0;
            for (int index = at; index < end; index++) {
                word |= (buffer.get(index) & 0xffL) << 8 * (index - at);
            }
            return word;
        }
    }

    /**
     * {@code buffered-reader}: BufferedReader.readLine over ISO-8859-1, a string for each line. Lines end with \n, \r
     * or \r\n, and what stands behind the last end is a line too.
     */
    private static final class LineScan extends Scanner {
        private final Job job;
        private final FileInputStream file;

        LineScan(Job job) throws CallFailure {
            super(job);
            this.job = job;
            try {
                file = new FileInputStream(job.path);
            } catch (IOException error) {
                throw CallFailure.failed("open", error, job.path, 0);
            }
            job.closeLater(file::close);
        }

        @Override
        long touch() {
            throw new UnsupportedOperationException("lines only");
        }

        @Override
        long sum() {
            throw new UnsupportedOperationException("lines only");
        }

        @Override
        long lines() throws CallFailure {
            try {
                file.getChannel().position(0);
                SpanStream span = new SpanStream(file, spanBytes);
                BufferedReader reader = new BufferedReader(new InputStreamReader(span, StandardCharsets.ISO_8859_1));
                long lines = 0;
                long chars = 0;
                for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                    lines++;
                    chars += line.length();
                }
                if (span.left > 0) {
                    throw CallFailure.shortRead("read", job.path, 0, spanBytes, spanBytes - span.left);
                }
                read = chars;
                return lines;
            } catch (IOException error) {
                throw CallFailure.failed("read", error, job.path, 0);
            }
        }

        /** Keeps the lines alive. */
        volatile long read;
    }

    /** The first bytes of a file. */
    private static final class SpanStream extends InputStream {
        private final InputStream file;
        long left;

        SpanStream(InputStream file, long spanBytes) {
            this.file = file;
            left = spanBytes;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] into, int at, int len) throws IOException {
            if (left == 0) {
                return -1;
            }
            int received = file.read(into, at, (int) Math.min(len, left));
            left -= Math.max(received, 0);
            return received;
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Writers: records of append, blocks of fill
    // ---------------------------------------------------------------------------------------------------------------

    /** Makes the writer of a job. */
    private static final class Writers {
        static Work open(Job job) throws CallFailure {
            if (!job.word.equals("mmap")) {
                throw job.unknown();
            }
            job.allow("buffer=");
            if (job.recordBytes < 1 || job.recordBytes > job.fileBytes || job.sourcePeriod < 1) {
                throw job.refusal("records of " + job.recordBytes + " bytes from a source of period " + job.sourcePeriod
                        + " cannot be written to a file of " + job.fileBytes + " bytes", true);
            }
            long syncBytes = syncBytes(job);
            if (job.options.isEmpty()) {
                return new Stored(job, syncBytes);
            }
            long buffer = size(job.options.get(0).substring("buffer=".length()));
            if (buffer < 0) {
                throw job.unknown();
            }
            if (buffer < job.recordBytes) {
                throw job.refusal("a record of " + job.recordBytes + " bytes does not fit into the buffer of " + buffer
                        + " bytes", true);
            }
            if (buffer > 1 << 30) {
                throw job.refusal("a buffer of " + buffer + " bytes is no byte array; 1 GiB is", true);
            }
            return new Staged(job, syncBytes, (int) buffer / job.recordBytes * job.recordBytes);
        }

        private static long syncBytes(Job job) throws CallFailure {
            if (job.sync.equals("none") || job.sync.equals("end")) {
                return Long.MAX_VALUE;
            }
            long bytes = job.sync.startsWith("every:") ? size(job.sync.substring("every:".length())) : -1;
            if (bytes < 1) {
                throw job.refusal("there is no sync '" + job.sync + "'", true);
            }
            return bytes;
        }

        /** A size such as {@code 64KiB}; -1: it is none. */
        private static long size(String text) {
            String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
            for (int unit = units.length - 1; unit >= 0; unit--) {
                int end = text.length() - units[unit].length();
                String digits = text.endsWith(units[unit]) ? text.substring(0, end) : "";
                if (digits.matches("[0-9]{1,18}")) {
                    long count = Long.parseLong(digits);
                    return count <= Long.MAX_VALUE >> 10 * unit ? count << 10 * unit : -1;
                }
            }
            return -1;
        }
    }

    /** The mapping, the cursor in the ring, and what is not synced yet. */
    private abstract static class Writer extends Work {
        final String path;
        final MemorySegment file;
        /** The period and a record more; a record that was just made would be a byte array too. */
        final byte[] source;
        final int recordBytes;
        final int period;
        /** Bytes of the file that records may take: whole ones. */
        final long ringBytes;
        private final long syncBytes;
        private long unsynced;
        private long offered;
        /** Where in the file the next byte goes. */
        long cursor;
        /** Where in the source the next record begins. */
        int place;

        Writer(Job job, long syncBytes) throws CallFailure {
            path = job.path;
            recordBytes = job.recordBytes;
            period = job.sourcePeriod;
            ringBytes = job.fileBytes / recordBytes * recordBytes;
            this.syncBytes = syncBytes;
            source = new byte[Math.addExact(period, recordBytes)];
            MemorySegment.copy(job.source, ValueLayout.JAVA_BYTE, 0, source, 0, source.length);
            file = job.mapWritable();
        }

        @Override
        final long perform(long position, long wanted) throws CallFailure {
            if (position != offered) {
                throw new CallFailure("append", 0, path, 0, "record " + position + " was asked for where record "
                        + offered + " is next; they are written in order", false);
            }
            append(wanted);
            offered += wanted;
            return wanted;
        }

        abstract void append(long records) throws CallFailure;

        /** Bytes after which a sync is due. */
        final long untilSync() {
            return syncBytes - unsynced;
        }

        /** Counts bytes that reached the file at the cursor, not beyond the end of the ring. Whether a sync is due. */
        final boolean advance(long count) {
            bytes += count;
            unsynced += count;
            cursor += count;
            cursor = cursor == ringBytes ? 0 : cursor;
            return unsynced >= syncBytes;
        }

        /** msync(2) of what is not synced: in two parts where the end of the ring lies between. */
        final void syncNow() throws CallFailure {
            if (unsynced >= ringBytes) {
                sync(0, ringBytes);
            } else if (unsynced <= cursor) {
                sync(cursor - unsynced, cursor);
            } else {
                sync(ringBytes - (unsynced - cursor), ringBytes);
                sync(0, cursor);
            }
            unsynced = 0;
        }

        final void syncRest() throws CallFailure {
            if (syncBytes != Long.MAX_VALUE && unsynced > 0) {
                syncNow();
            }
        }

        private void sync(long from, long to) throws CallFailure {
            if (from == to) {
                return;
            }
            try {
                file.asSlice(from, to - from).force();
            } catch (UncheckedIOException error) {
                throw CallFailure.failed("msync", error.getCause(), path, from);
            }
        }

        @Override
        final void sync() throws CallFailure {
            sync(0, file.byteSize());
        }
    }

    /** {@code mmap}: records are copied to where they come to lie. */
    private static final class Stored extends Writer {
        Stored(Job job, long syncBytes) throws CallFailure {
            super(job, syncBytes);
        }

        /** Timed: {@code for each record: copy(source + place, file + to), place = (place + record) % period}. */
        private void store(long at, long end) {
            int step = recordBytes % period;
            int next = place;
            for (long to = at; to < end; to += recordBytes) {
                MemorySegment.copy(source, next, file, ValueLayout.JAVA_BYTE, to, recordBytes);
                next += step;
                next -= next >= period ? period : 0;
            }
            place = next;
        }

        /** A stretch ends at the end of the ring, or with the record after which a sync is due. */
        @Override
        void append(long records) throws CallFailure {
            long left = records * recordBytes;
            while (left > 0) {
                long stretch = Math.min(left, ringBytes - cursor);
                if (untilSync() < stretch) {
                    stretch = Math.min(stretch, (untilSync() + recordBytes - 1) / recordBytes * recordBytes);
                }
                store(cursor, cursor + stretch);
                left -= stretch;
                if (advance(stretch)) {
                    syncNow();
                }
            }
        }

        @Override
        void finish() throws CallFailure {
            syncRest();
        }
    }

    /**
     * {@code mmap:buffer=SIZE}: whole records are collected in a byte array, and copied into the mapping when the next
     * one does not fit. With an array at both ends a record of 16 bytes is copied in half the time that memory outside
     * the heap takes.
     */
    private static final class Staged extends Writer {
        private final byte[] buffer;
        private int filled;

        Staged(Job job, long syncBytes, int capacity) throws CallFailure {
            super(job, syncBytes);
            buffer = new byte[capacity];
        }

        /** Timed: as of {@link Stored}, into the buffer. */
        private void collect(int at, int end) {
            int step = recordBytes % period;
            int next = place;
            for (int to = at; to < end; to += recordBytes) {
                System.arraycopy(source, next, buffer, to, recordBytes);
                next += step;
                next -= next >= period ? period : 0;
            }
            place = next;
        }

        @Override
        void append(long records) throws CallFailure {
            long left = records * recordBytes;
            while (left > 0) {
                if (filled == buffer.length) {
                    flush();
                }
                int some = (int) Math.min(left, buffer.length - filled);
                collect(filled, filled + some);
                filled += some;
                left -= some;
            }
        }

        /** In parts where the end of the ring lies between: what is behind it goes to its start. */
        private void flush() throws CallFailure {
            boolean due = false;
            for (int at = 0; at < filled;) {
                int some = (int) Math.min(filled - at, ringBytes - cursor);
                MemorySegment.copy(buffer, at, file, ValueLayout.JAVA_BYTE, cursor, some);
                due |= advance(some);
                at += some;
            }
            filled = 0;
            if (due) {
                syncNow();
            }
        }

        @Override
        void finish() throws CallFailure {
            flush();
            syncRest();
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Heartbeats: what the measured threads do to everything else in the process
    // ---------------------------------------------------------------------------------------------------------------

    /** All of a job; none where the job asks for none. */
    private static final class Heartbeats {
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
        Json tell(Json answer) {
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
    }

    /** Beats in intervals and notes by how much each came late, within the regions that it is told. */
    private abstract static class Heartbeat implements Runnable {
        final String kind;
        final long intervalNs;
        final Histogram delays = new Histogram();
        /** Guards what follows; a lock and no monitor, which would pin a virtual thread to its carrier. */
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
     * A thread that sleeps. A platform thread sleeps in the kernel, a virtual one until a thread of the JDK has it run
     * by a carrier: 50 to 200 us late, which an idle process shows. A thread that wakes while a safepoint is being
     * reached waits for it, so these delays hold time to safepoint too, where one was requested: by the heartbeat below
     * or by the garbage collector.
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
     * Requests safepoints in intervals, and notes how long each took to reach. ThreadMXBean's search for deadlocked
     * threads is a VM operation at a safepoint of the whole VM (FindDeadlocks in the log, JDK 22 to 25), and one of the
     * cheapest; a handshake would stop one thread after the other. The JVM's log tells how long it took from the
     * request to the last thread's stop; the line is written before the call returns. Measured threads stop at these
     * too, and wait for the slowest of them.
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
                log = openChannel(path, StandardOpenOption.READ);
                position = log.size();
                threads.findMonitorDeadlockedThreads();
                if (reached() < 0) {
                    throw new CallFailure("read", 0, path, 0, "the JVM's log of safepoints at " + path + " does not "
                            + "tell how long it took to reach the one requested", true);
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
                    // One that is not reached when the region ends counts with the time since the request.
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

        /** What the log has new says of the safepoint requested last, in ns; -1: nothing. */
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

    // ---------------------------------------------------------------------------------------------------------------
    // The C library, by the foreign-function interface
    // ---------------------------------------------------------------------------------------------------------------

    /** Calls of Linux; errno is captured right behind each, before the JVM makes calls of its own. */
    @SuppressWarnings("restricted")
    private static final class Libc {
        static final int MADV_RANDOM = 1;
        static final int MADV_SEQUENTIAL = 2;
        static final int MADV_WILLNEED = 3;
        /** O_RDONLY is 0; O_CLOEXEC of all architectures that there is a JDK for. */
        private static final int O_CLOEXEC = 0x80000;

        private static final Linker LINKER = Linker.nativeLinker();
        private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");
        private static final VarHandle ERRNO =
                Linker.Option.captureStateLayout().varHandle(MemoryLayout.PathElement.groupElement("errno"));

        private static final MethodHandle OPEN = handle("open", FunctionDescriptor.of(ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS, ValueLayout.JAVA_INT), CAPTURE, Linker.Option.firstVariadicArg(2));
        private static final MethodHandle CLOSE =
                handle("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT), CAPTURE);
        private static final MethodHandle PREAD = handle("pread", FunctionDescriptor.of(ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG), CAPTURE);
        /** The address as a number, so that no segment is made and none is counted for a range of a mapping. */
        private static final MethodHandle MADVISE = handle("madvise", FunctionDescriptor.of(ValueLayout.JAVA_INT,
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT), CAPTURE);
        private static final MethodHandle STRERROR =
                handle("strerror", FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_INT));

        private static MethodHandle handle(String name, FunctionDescriptor descriptor, Linker.Option... options) {
            MemorySegment function = LINKER.defaultLookup().find(name)
                    .orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
            return LINKER.downcallHandle(function, descriptor, options);
        }

        /** Where errno is captured: one for each thread. */
        static MemorySegment state() {
            return Arena.ofAuto().allocate(Linker.Option.captureStateLayout());
        }

        static int errno(MemorySegment state) {
            return (int) ERRNO.get(state, 0L);
        }

        /** open(2) for reading, with further flags. */
        static int open(String path, int flags, String call) throws CallFailure {
            MemorySegment state = state();
            int descriptor;
            try (Arena arena = Arena.ofConfined()) {
                descriptor = (int) OPEN.invokeExact(state, arena.allocateFrom(path), flags | O_CLOEXEC);
            } catch (Throwable thrown) {
                throw unexpected(thrown);
            }
            if (descriptor < 0) {
                throw flags == 0 ? CallFailure.failed(call, errno(state), path, 0)
                        : CallFailure.refused(call, errno(state), path);
            }
            return descriptor;
        }

        static void close(int descriptor, String path) throws CallFailure {
            MemorySegment state = state();
            int result;
            try {
                result = (int) CLOSE.invokeExact(state, descriptor);
            } catch (Throwable thrown) {
                throw unexpected(thrown);
            }
            if (result != 0) {
                throw CallFailure.failed("close", errno(state), path, 0);
            }
        }

        /** Bytes received; -1: errno is in {@code state}. */
        static long pread(MemorySegment state, int descriptor, MemorySegment into, long bytes, long offset) {
            try {
                return (long) PREAD.invokeExact(state, descriptor, into, bytes, offset);
            } catch (Throwable thrown) {
                throw unexpected(thrown);
            }
        }

        /** 0, or -1 and errno is in {@code state}. */
        static int madvise(MemorySegment state, long address, long bytes, int advice) {
            try {
                return (int) MADVISE.invokeExact(state, address, bytes, advice);
            } catch (Throwable thrown) {
                throw unexpected(thrown);
            }
        }

        /** Advice for a whole mapping, in set-up. */
        static void advise(MemorySegment mapping, int advice, String call, String path) throws CallFailure {
            MemorySegment state = state();
            if (madvise(state, mapping.address(), mapping.byteSize(), advice) != 0) {
                throw CallFailure.refused(call, errno(state), path);
            }
        }

        static String strerror(int errno) {
            try {
                MemorySegment text = (MemorySegment) STRERROR.invokeExact(errno);
                return text.reinterpret(256).getString(0);
            } catch (Throwable thrown) {
                throw unexpected(thrown);
            }
        }

        /** A method handle is declared to throw anything; a call of C throws nothing. */
        private static Error unexpected(Throwable thrown) {
            return thrown instanceof Error error ? error : new AssertionError(thrown);
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // Failures
    // ---------------------------------------------------------------------------------------------------------------

    /** A call that failed, as the protocol carries it. */
    private static final class CallFailure extends Exception {
        private static final long serialVersionUID = 1;
        /** EPERM, EACCES, ENODEV, EINVAL, ENOSYS, EOPNOTSUPP: what a machine answers that does not offer something. */
        private static final Set<Integer> NOT_OFFERED = Set.of(1, 13, 19, 22, 38, 95);

        private final String call;
        private final int errno;
        private final String path;
        private final long offset;
        private final boolean unavailable;

        CallFailure(String call, int errno, String path, long offset, String detail, boolean unavailable) {
            super(detail);
            this.call = call;
            this.errno = errno;
            this.path = path;
            this.offset = offset;
            this.unavailable = unavailable;
        }

        /** A call that should work everywhere. */
        static CallFailure failed(String call, int errno, String path, long offset) {
            return failed(call, errno, path, offset, Libc.strerror(errno));
        }

        /** The same where the JDK made the call. */
        static CallFailure failed(String call, IOException error, String path, long offset) {
            int errno = Failures.errno(error);
            return failed(call, errno, path, offset, errno == 0 ? error.toString() : Libc.strerror(errno));
        }

        private static CallFailure failed(String call, int errno, String path, long offset, String why) {
            String place = offset == 0 ? path : "offset " + offset + " of " + path;
            return new CallFailure(call, errno, path, offset, call + " failed at " + place + ": " + why, false);
        }

        /** A call that some kernels, filesystems or policies refuse. */
        static CallFailure refused(String call, int errno, String path) {
            String detail = call + " was refused for " + path + ": " + Libc.strerror(errno);
            return new CallFailure(call, errno, path, 0, detail, NOT_OFFERED.contains(errno));
        }

        /** A read that did not bring what it should: -1 and errno in {@code state}, or too few bytes. */
        static CallFailure read(
                String call, MemorySegment state, String path, long offset, long expected, long received) {
            return received < 0 ? failed(call, Libc.errno(state), path, offset)
                    : shortRead(call, path, offset, expected, received);
        }

        static CallFailure shortRead(String call, String path, long offset, long expected, long received) {
            String detail = call + " at offset " + offset + " of " + path + " returned " + Math.max(0, received)
                    + " of " + expected + " bytes";
            return new CallFailure(call, 0, path, offset, detail, false);
        }

        /** A fault in a mapping (SIGBUS): the JVM tells it as an InternalError, in the thread that accessed it. */
        static CallFailure fault(InternalError error, String path) {
            return new CallFailure("mmap", 0, path, 0, "an access to the mapping failed: " + error.getMessage(), false);
        }

        Json reply() {
            return new Json().text("type", "failed").text("call", call).number("errno", errno).text("path", path)
                    .number("offset", offset).text("detail", getMessage()).number("unavailable", unavailable ? 1 : 0);
        }
    }

    /** What the JDK's exceptions stand for. */
    private static final class Failures {
        private static final int ENOENT = 2;
        private static final int EACCES = 13;
        private static final int LAST_ERRNO = 133;

        /** errno behind an exception of the JDK, which keeps the text alone; 0: none was found. */
        static int errno(IOException error) {
            if (error instanceof NoSuchFileException) {
                return ENOENT;
            }
            if (error instanceof AccessDeniedException) {
                return EACCES;
            }
            String text = error instanceof FileSystemException failed ? failed.getReason() : error.getMessage();
            for (int errno = 1; text != null && errno <= LAST_ERRNO; errno++) {
                String known = Libc.strerror(errno);
                if (text.equals(known) || text.endsWith("(" + known + ")")) {
                    return errno;
                }
            }
            return 0;
        }
    }

    // ---------------------------------------------------------------------------------------------------------------
    // JSON: flat objects of strings, integers up to 64 bits without sign, and arrays of them
    // ---------------------------------------------------------------------------------------------------------------

    /** An answer that is being written. */
    private static final class Json {
        private final StringBuilder text = new StringBuilder("{");

        private Json key(String key) {
            text.append(text.length() == 1 ? "\"" : ",\"").append(key).append("\":");
            return this;
        }

        Json text(String key, String value) {
            key(key).text.append('"');
            for (int index = 0; index < value.length(); index++) {
                char character = value.charAt(index);
                if (character == '"' || character == '\\') {
                    text.append('\\').append(character);
                } else if (character < ' ' || Character.isSurrogate(character)) {
                    text.append(String.format("\\u%04x", (int) character));
                } else {
                    text.append(character);
                }
            }
            text.append('"');
            return this;
        }

        Json number(String key, long value) {
            key(key).text.append(Long.toUnsignedString(value));
            return this;
        }

        Json numbers(String key, long[] values) {
            key(key).text.append('[');
            for (int index = 0; index < values.length; index++) {
                text.append(index == 0 ? "" : ",").append(Long.toUnsignedString(values[index]));
            }
            text.append(']');
            return this;
        }

        byte[] line() {
            return (text + "}\n").getBytes(StandardCharsets.UTF_8);
        }
    }

    /** A line of pagewise's. */
    private static final class Request {
        private final String line;
        private int at;
        /** String, Long (without sign) or long[]. */
        private final Map<String, Object> fields = new HashMap<>();

        private Request(String line) {
            this.line = line;
        }

        static Request parse(String line) throws IOException {
            Request request = new Request(line);
            request.object();
            return request;
        }

        String type() throws IOException {
            return text("type");
        }

        String text(String key) throws IOException {
            if (fields.get(key) instanceof String value) {
                return value;
            }
            throw new IOException("not of the protocol: no text '" + key + "' in " + line);
        }

        long number(String key) {
            if (fields.get(key) instanceof Long value) {
                return value;
            }
            throw new IllegalArgumentException("not of the protocol: no number '" + key + "' in " + line);
        }

        /** A number of 2^63 or more stands for no bound. */
        long bound(String key) {
            long value = number(key);
            return value < 0 ? Long.MAX_VALUE : value;
        }

        int count(String key) {
            return Math.toIntExact(number(key));
        }

        boolean flag(String key) {
            return number(key) == 1;
        }

        long[] numbers(String key) {
            if (fields.get(key) instanceof long[] value) {
                return value;
            }
            throw new IllegalArgumentException("not of the protocol: no numbers '" + key + "' in " + line);
        }

        private void object() throws IOException {
            expect('{');
            if (!accept('}')) {
                do {
                    String key = string();
                    expect(':');
                    fields.put(key, value());
                } while (accept(','));
                expect('}');
            }
            skipSpace();
            if (at < line.length()) {
                throw malformed();
            }
        }

        private Object value() throws IOException {
            skipSpace();
            char first = at < line.length() ? line.charAt(at) : 0;
            if (first == '"') {
                return string();
            }
            if (first != '[') {
                return integer();
            }
            at++;
            long[] values = new long[16];
            int count = 0;
            if (!accept(']')) {
                do {
                    values = count == values.length ? Arrays.copyOf(values, 2 * count) : values;
                    values[count++] = integer();
                } while (accept(','));
                expect(']');
            }
            return Arrays.copyOf(values, count);
        }

        private long integer() throws IOException {
            skipSpace();
            int start = at;
            while (at < line.length() && line.charAt(at) >= '0' && line.charAt(at) <= '9') {
                at++;
            }
            try {
                if (at - start > 1 && line.charAt(start) == '0') {
                    throw malformed();
                }
                return Long.parseUnsignedLong(line, start, at, 10);
            } catch (NumberFormatException overflow) {
                throw malformed();
            }
        }

        private String string() throws IOException {
            expect('"');
            StringBuilder value = new StringBuilder();
            while (at < line.length()) {
                char character = line.charAt(at++);
                if (character == '"') {
                    return value.toString();
                }
                if (character < ' ') {
                    break;
                }
                value.append(character == '\\' ? escaped() : character);
            }
            throw malformed();
        }

        private char escaped() throws IOException {
            char character = at < line.length() ? line.charAt(at++) : 0;
            switch (character) {
                case '"', '\\', '/':
                    return character;
                case 'b':
                    return '\b';
                case 'f':
                    return '\f';
                case 'n':
                    return '\n';
                case 'r':
                    return '\r';
                case 't':
                    return '\t';
                case 'u':
                    if (at + 4 <= line.length() && line.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) {
                        at += 4;
                        return (char) Integer.parseInt(line, at - 4, at, 16);
                    }
                    throw malformed();
                default:
                    throw malformed();
            }
        }

        private void skipSpace() {
            while (at < line.length() && " \t\r\n".indexOf(line.charAt(at)) >= 0) {
                at++;
            }
        }

        private boolean accept(char character) {
            skipSpace();
            boolean there = at < line.length() && line.charAt(at) == character;
            at += there ? 1 : 0;
            return there;
        }

        private void expect(char character) throws IOException {
            if (!accept(character)) {
                throw malformed();
            }
        }

        private IOException malformed() {
            return new IOException("not of the protocol: byte " + at + " of " + line);
        }
    }
}
