package pagewise;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/** The request of {@code open}, and everything opened for it. */
final class Job {
    final String method;
    final String workload;
    final String path;
    final long fileBytes;
    final long spanBytes;
    final int threads;
    final boolean perThread;
    final String tablePath;
    final long tableReads;
    final long pieceReads;
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
    final long throughputOperations;
    final long throughputDeviceBytes;
    final long latencyDeviceBytes;
    final int recordBytes;
    final long records;
    final String sync;
    final String syncCall;
    final String sourcePath;
    final int sourcePeriod;
    final long gapSeed;
    final String handoverPath;
    final long heartbeatNs;
    final Policy policy;

    /** The word of the method, and its options in the order written. */
    final String word;
    final List<String> options;

    /** The work of each thread. */
    Work[] work;
    /**
     * The offset table: zeros until {@code go}, and another one with each; its page tables are
     * full.
     */
    MemorySegment table;
    /** Source of the records: the period and a record more. */
    MemorySegment source;

    /**
     * Holds all mappings of the job. It is closed by another thread than those that use it, so it
     * is shared; a mapping that waited for the garbage collector would keep pages in the cache.
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
        pieceReads = open.bound("piece_reads");
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
        throughputOperations = open.bound("throughput_operations");
        throughputDeviceBytes = open.bound("throughput_device_bytes");
        latencyDeviceBytes = open.bound("latency_device_bytes");
        recordBytes = open.count("record_bytes");
        records = open.bound("records");
        sync = open.text("sync");
        syncCall = open.text("sync_call");
        sourcePath = open.text("source_path");
        sourcePeriod = open.count("source_period");
        gapSeed = open.number("gap_seed");
        handoverPath = open.text("handover_path");
        heartbeatNs = open.bound("heartbeat_ns");
        policy = Policy.of(open);
        int colon = method.indexOf(':');
        word = colon < 0 ? method : method.substring(0, colon);
        options = colon < 0 ? List.of() : List.of(method.substring(colon + 1).split("\\+", -1));
    }

    boolean reads() {
        return workload.equals("random-read") || workload.equals("sequential-read");
    }

    boolean writes() {
        return workload.equals("append") || workload.equals("fill") || updates();
    }

    boolean updates() {
        return workload.equals("update");
    }

    boolean commits() {
        return writes() && sync.equals("commit");
    }

    boolean has(String option) {
        return options.contains(option);
    }

    /**
     * The table and the source: pagewise's own files, which are no part of the set-up that is
     * timed.
     */
    void mapInputs() throws CallFailure {
        if (reads() || updates()) {
            table = mapInput(tablePath, Math.multiplyExact(tableReads, 8));
        }
        if (writes()) {
            source = mapInput(sourcePath, (long) sourcePeriod + recordBytes);
        }
    }

    private MemorySegment mapInput(String input, long bytes) throws CallFailure {
        try (FileChannel channel = Files.openChannel(input, StandardOpenOption.READ)) {
            MemorySegment mapped = Files.map(channel, FileChannel.MapMode.READ_ONLY, input, bytes, mappings);
            mapped.load();
            return mapped;
        } catch (IOException error) {
            throw CallFailure.failed("close", Failures.errno(error), input, 0);
        }
    }

    /** Set-up: what each thread is to do. */
    void open() throws CallFailure {
        Offers.check(this);
        if (threads < 1 || !reads() && !commits() && threads != 1) {
            throw refusal(workload + " is not the work of " + threads + " threads", false);
        }
        switch (workload) {
            case "random-read", "sequential-read" -> work = Readers.open(this);
            case "scan" -> work = new Work[] {Scanners.open(this)};
            case "append", "fill", "update" -> work = Writers.open(this);
            default -> throw refusal("there is no workload '" + workload + "'", true);
        }
    }

    CallFailure unknown() {
        return refusal("the JVM's worker has no method '" + method + "' for " + workload, true);
    }

    /** Refusal of a job that cannot be done: no call was made. */
    CallFailure refusal(String detail, boolean unavailable) {
        return new CallFailure("open", 0, path, 0, detail, unavailable);
    }

    /** Opens the file; it is closed with the job. */
    FileChannel channel(StandardOpenOption... access) throws CallFailure {
        FileChannel channel = Files.openChannel(path, access);
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
        try (FileChannel channel = Files.openChannel(path, StandardOpenOption.READ)) {
            mapped = Files.map(channel, FileChannel.MapMode.READ_ONLY, path, spanBytes, mappings);
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
                case "prefetch", "in-place" -> { }
                default -> throw unknown();
            }
        }
        return mapped;
    }

    /** Maps the whole file for writing. */
    MemorySegment mapWritable() throws CallFailure {
        MemorySegment mapped;
        try (FileChannel channel = Files.openChannel(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            mapped = Files.map(channel, FileChannel.MapMode.READ_WRITE, path, fileBytes, mappings);
        } catch (IOException error) {
            throw CallFailure.failed("close", Failures.errno(error), path, 0);
        }
        fileMappings.add(mapped);
        if (has("random")) {
            Libc.advise(mapped, Libc.MADV_RANDOM, "madvise(MADV_RANDOM)", path);
        }
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
                        Files.openChannel(handoverPath, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MemorySegment into = Files.map(channel, FileChannel.MapMode.READ_WRITE, handoverPath, bytes, arena);
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

    /** Something that the job closes. */
    interface Descriptor {
        void close() throws IOException, CallFailure;
    }
}
