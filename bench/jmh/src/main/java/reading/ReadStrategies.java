package reading;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.infra.Blackhole;
import org.openjdk.jmh.infra.BenchmarkParams;

/**
 * Five ways to read a file at random, as a user of JMH would compare them. An operation is 16 reads of 16 KiB; of each
 * read one word of each page is consumed. Offsets come from a table, which every thread reads front to back from a
 * place of its own. Threads share the handle and the mapping, and have their own buffers.
 *
 * <p>{@code java -jar benchmarks.jar mmap -p file=F -p table=T -t 2}
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class ReadStrategies {
    private static final int READ_BYTES = 16 << 10;
    private static final int READS = 16;
    private static final int PAGE_BYTES = 4096;

    private static final ValueLayout.OfLong WORD =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle ARRAY_WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    /** The C library. */
    private static final class C {
        static final int O_DIRECT = System.getProperty("os.arch").equals("aarch64") ? 0x10000 : 0x4000;
        static final StructLayout STATE = Linker.Option.captureStateLayout();
        static final VarHandle ERRNO = STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

        private static final Linker LINKER = Linker.nativeLinker();
        private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");
        static final MethodHandle PREAD = LINKER.downcallHandle(
                LINKER.defaultLookup().find("pread").orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.ADDRESS,
                        ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG),
                CAPTURE);
        static final MethodHandle OPEN = LINKER.downcallHandle(
                LINKER.defaultLookup().find("open").orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
                CAPTURE, Linker.Option.firstVariadicArg(2));
        static final MethodHandle CLOSE = LINKER.downcallHandle(
                LINKER.defaultLookup().find("close").orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
    }

    /** What threads share. */
    @State(Scope.Benchmark)
    public static class Shared {
        @Param("")
        public String file;
        @Param("")
        public String table;

        long[] offsets;
        final AtomicInteger threads = new AtomicInteger();
        Arena arena;
        MemorySegment mapping;
        FileChannel channel;
        int cached;
        int direct;

        @Setup(Level.Trial)
        public void open() throws Throwable {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(table))).order(ByteOrder.LITTLE_ENDIAN);
            offsets = new long[bytes.remaining() / 8];
            bytes.asLongBuffer().get(offsets);
            arena = Arena.ofShared();
            channel = FileChannel.open(Path.of(file), StandardOpenOption.READ);
            mapping = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
            cached = open(file, 0);
            direct = open(file, C.O_DIRECT);
        }

        @TearDown(Level.Trial)
        public void close() throws Throwable {
            arena.close();
            channel.close();
            int ignored = (int) C.CLOSE.invokeExact(cached);
            ignored = (int) C.CLOSE.invokeExact(direct);
        }

        private static int open(String path, int flags) throws Throwable {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment state = arena.allocate(C.STATE);
                int descriptor = (int) C.OPEN.invokeExact(state, arena.allocateFrom(path), flags);
                if (descriptor < 0) {
                    throw new IOException("open " + path + ": errno " + (int) C.ERRNO.get(state, 0L));
                }
                return descriptor;
            }
        }
    }

    /** What each thread has of its own. */
    @State(Scope.Thread)
    public static class Own {
        long[] offsets;
        int next;
        final byte[] array = new byte[READ_BYTES];
        final ByteBuffer heap = ByteBuffer.wrap(array);
        final ByteBuffer outside = ByteBuffer.allocateDirect(READ_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        final MemorySegment aligned = Arena.ofAuto().allocate(READ_BYTES, PAGE_BYTES);
        final MemorySegment state = Arena.ofAuto().allocate(C.STATE);

        @Setup(Level.Trial)
        public void begin(Shared shared, BenchmarkParams params) {
            offsets = shared.offsets;
            int part = offsets.length / READS / params.getThreads() * READS;
            next = shared.threads.getAndIncrement() * part;
        }

        /** Where the next operation begins in the table. */
        int advance() {
            int from = next;
            next = from + 2 * READS <= offsets.length ? from + READS : 0;
            return from;
        }
    }

    @Benchmark
    public void mmap(Shared shared, Own own, Blackhole blackhole) {
        int from = own.advance();
        for (int read = from; read < from + READS; read++) {
            MemorySegment.copy(shared.mapping, ValueLayout.JAVA_BYTE, own.offsets[read], own.array, 0, READ_BYTES);
            blackhole.consume(touch(own.array));
        }
    }

    @Benchmark
    public void pread(Shared shared, Own own, Blackhole blackhole) throws Throwable {
        preads(shared.cached, own, blackhole);
    }

    @Benchmark
    public void preadDirect(Shared shared, Own own, Blackhole blackhole) throws Throwable {
        preads(shared.direct, own, blackhole);
    }

    @Benchmark
    public void channelDirectBuffer(Shared shared, Own own, Blackhole blackhole) throws IOException {
        int from = own.advance();
        for (int read = from; read < from + READS; read++) {
            if (shared.channel.read(own.outside.clear(), own.offsets[read]) != READ_BYTES) {
                throw new EOFException();
            }
            blackhole.consume(touch(own.outside));
        }
    }

    @Benchmark
    public void channelHeapBuffer(Shared shared, Own own, Blackhole blackhole) throws IOException {
        int from = own.advance();
        for (int read = from; read < from + READS; read++) {
            if (shared.channel.read(own.heap.clear(), own.offsets[read]) != READ_BYTES) {
                throw new EOFException();
            }
            blackhole.consume(touch(own.array));
        }
    }

    private static void preads(int descriptor, Own own, Blackhole blackhole) throws Throwable {
        int from = own.advance();
        for (int read = from; read < from + READS; read++) {
            long received = (long) C.PREAD.invokeExact(
                    own.state, descriptor, own.aligned, (long) READ_BYTES, own.offsets[read]);
            if (received != READ_BYTES) {
                throw new IOException("pread: " + received + ", errno " + (int) C.ERRNO.get(own.state, 0L));
            }
            blackhole.consume(touch(own.aligned));
        }
    }

    private static long touch(byte[] bytes) {
        long total = 0;
        for (int at = 0; at < READ_BYTES; at += PAGE_BYTES) {
            total += (long) ARRAY_WORD.get(bytes, at);
        }
        return total;
    }

    private static long touch(ByteBuffer bytes) {
        long total = 0;
        for (int at = 0; at < READ_BYTES; at += PAGE_BYTES) {
            total += bytes.getLong(at);
        }
        return total;
    }

    private static long touch(MemorySegment bytes) {
        long total = 0;
        for (int at = 0; at < READ_BYTES; at += PAGE_BYTES) {
            total += bytes.get(WORD, at);
        }
        return total;
    }
}
