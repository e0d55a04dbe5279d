import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
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

/**
 * Bare loops: what the JVM's worker does, with nothing around it but a clock before and a clock
 * behind.
 *
 * <p>{@code Bare METHOD FILE TABLE} reads: each line of stdin is a number of operations of 16 reads
 * of 16 KiB, which go on in the table where those before ended. {@code Bare append FILE SOURCE
 * RECORD_BYTES PERIOD BUFFER_BYTES METHOD} writes: each line is a number of records, from the start
 * of the file on. The answer is {@code NANOSECONDS CHECKSUM}.
 */
public final class Bare {
    private static final int READ_BYTES = 16 << 10;
    private static final int OPERATION_BYTES = 16 * 8;
    private static final int PAGE_BYTES = 4096;
    private static final ValueLayout.OfLong WORD =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle ARRAY_WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private static final Linker LINKER = Linker.nativeLinker();
    private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");
    private static final MethodHandle PREAD = LINKER.downcallHandle(
            LINKER.defaultLookup().find("pread").orElseThrow(),
            FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.ADDRESS,
                    ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG),
            CAPTURE);
    private static final MethodHandle OPEN = LINKER.downcallHandle(
            LINKER.defaultLookup().find("open").orElseThrow(),
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
            Linker.Option.firstVariadicArg(2));

    /** Entries of the table from byte {@code from} to byte {@code to}; returns the checksum. */
    private interface Loop {
        long read(long from, long to) throws Throwable;
    }

    public static void main(String[] arguments) throws Throwable {
        if (arguments[0].equals("append")) {
            append(arguments);
            return;
        }
        MemorySegment table = map(arguments[2]);
        Loop loop = switch (arguments[0]) {
            case "mmap" -> mmap(table, map(arguments[1]));
            case "pread" -> pread(table, arguments[1]);
            case "filechannel:direct-buffer" -> directBuffer(table, FileChannel.open(Path.of(arguments[1])));
            case "filechannel:heap-buffer" -> heapBuffer(table, FileChannel.open(Path.of(arguments[1])));
            default -> throw new IllegalArgumentException(arguments[0]);
        };
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        long at = 0;
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            long left = Long.parseLong(line) * OPERATION_BYTES;
            long checksum = 0;
            long begun = System.nanoTime();
            while (left > 0) {
                long end = Math.min(at + left, table.byteSize());
                checksum += loop.read(at, end);
                left -= end - at;
                at = end == table.byteSize() ? 0 : end;
            }
            answer(System.nanoTime() - begun, checksum);
        }
    }

    private static void answer(long elapsedNs, long checksum) {
        System.out.println(elapsedNs + " " + Long.toUnsignedString(checksum));
        System.out.flush();
    }

    private static MemorySegment map(String path) throws IOException {
        try (FileChannel channel = FileChannel.open(Path.of(path))) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), Arena.ofShared());
        }
    }

    private static Loop mmap(MemorySegment table, MemorySegment file) {
        byte[] buffer = new byte[READ_BYTES];
        return (from, to) -> {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                MemorySegment.copy(file, ValueLayout.JAVA_BYTE, table.get(WORD, entry), buffer, 0, READ_BYTES);
                total += touch(buffer);
            }
            return total;
        };
    }

    private static Loop pread(MemorySegment table, String path) throws Throwable {
        int descriptor = (int) OPEN.invokeExact(Arena.global().allocateFrom(path), 0);
        if (descriptor < 0) {
            throw new IOException("open " + path);
        }
        MemorySegment buffer = Arena.ofAuto().allocate(READ_BYTES, PAGE_BYTES);
        MemorySegment state = Arena.ofAuto().allocate(Linker.Option.captureStateLayout());
        return (from, to) -> {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                long received = (long) PREAD.invokeExact(
                        state, descriptor, buffer, (long) READ_BYTES, table.get(WORD, entry));
                if (received != READ_BYTES) {
                    throw new EOFException();
                }
                total += touch(buffer);
            }
            return total;
        };
    }

    private static Loop directBuffer(MemorySegment table, FileChannel channel) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(READ_BYTES);
        MemorySegment bytes = MemorySegment.ofBuffer(buffer);
        return (from, to) -> {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                if (channel.read(buffer.clear(), table.get(WORD, entry)) != READ_BYTES) {
                    throw new EOFException();
                }
                total += touch(bytes);
            }
            return total;
        };
    }

    private static Loop heapBuffer(MemorySegment table, FileChannel channel) {
        byte[] bytes = new byte[READ_BYTES];
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return (from, to) -> {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                if (channel.read(buffer.clear(), table.get(WORD, entry)) != READ_BYTES) {
                    throw new EOFException();
                }
                total += touch(bytes);
            }
            return total;
        };
    }

    private static long touch(byte[] bytes) {
        long total = 0;
        for (int at = 0; at < READ_BYTES; at += PAGE_BYTES) {
            total += (long) ARRAY_WORD.get(bytes, at);
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

    private static void append(String[] arguments) throws IOException {
        byte[] source = Files.readAllBytes(Path.of(arguments[2]));
        int record = Integer.parseInt(arguments[3]);
        int period = Integer.parseInt(arguments[4]);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            long bytes = Long.parseLong(line) * record;
            try (Arena arena = Arena.ofShared();
                    FileChannel channel = FileChannel.open(
                            Path.of(arguments[1]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                if (arguments[6].startsWith("filechannel")) {
                    ByteBuffer records = ByteBuffer.allocateDirect(source.length).put(source);
                    long begun = System.nanoTime();
                    write(records, record, period, channel, bytes);
                    answer(System.nanoTime() - begun, 0);
                    continue;
                }
                MemorySegment file = channel.map(FileChannel.MapMode.READ_WRITE, 0, channel.size(), arena);
                long begun = System.nanoTime();
                store(source, record, period, file, bytes);
                answer(System.nanoTime() - begun, 0);
            }
        }
    }

    private static void write(ByteBuffer records, int record, int period, FileChannel channel, long bytes)
            throws IOException {
        int step = record % period;
        int place = 0;
        for (long to = 0; to < bytes; to += record) {
            channel.write(records.clear().position(place).limit(place + record), to);
            place += step;
            place -= place >= period ? period : 0;
        }
    }

    private static void store(byte[] source, int record, int period, MemorySegment file, long bytes) {
        int step = record % period;
        int place = 0;
        for (long to = 0; to < bytes; to += record) {
            MemorySegment.copy(source, place, file, ValueLayout.JAVA_BYTE, to, record);
            place += step;
            place -= place >= period ? period : 0;
        }
    }
}
