package pagewise;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Makes the scanner of a job. */
final class Scanners {
    static Work open(Job job) throws CallFailure {
        boolean words = job.consume.equals("touch") || job.consume.equals("sum");
        if (!words && !job.consume.equals("lines") || words && job.word.equals("buffered-reader")) {
            throw job.refusal("there is no '" + job.consume + "' of a scan by " + job.method, true);
        }
        int piece = Scanner.PIECE_BYTES;
        if (job.consume.equals("touch") && (job.pageBytes < 8 || piece % job.pageBytes != 0)) {
            throw job.refusal("pieces of " + piece + " bytes are no whole pages of " + job.pageBytes, true);
        }
        return switch (job.word) {
            case "mmap" -> job.has("in-place") ? new InPlaceScan(job) : new CopiedScan(job);
            case "mapped-byte-buffer" -> new ByteBufferScan(job);
            default -> new LineScan(job);
        };
    }

    /** {@code mmap}: pieces of the mapping are copied to a byte array. */
    private static final class CopiedScan extends Scanner {
        private final MemorySegment file;
        private final byte[] buffer = new byte[PIECE_BYTES];

        CopiedScan(Job job) throws CallFailure {
            super(job);
            file = job.mapSpan();
        }

        @Override
        long get(long offset, int len) {
            MemorySegment.copy(file, ValueLayout.JAVA_BYTE, offset, buffer, 0, len);
            return 0;
        }

        @Override
        long touch(long at, int len) {
            return Heap.touch(buffer, len, 0, pageBytes, false);
        }

        @Override
        long sum(long at, int len) {
            return Heap.sum(buffer, len);
        }

        @Override
        long lines(long at, int len) {
            return Heap.lines(buffer, len);
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
        long get(long offset, int len) {
            return offset;
        }

        @Override
        long touch(long at, int len) {
            return Native.touch(file, at, len, 0, pageBytes, false);
        }

        @Override
        long sum(long at, int len) {
            return Native.sum(file, at, len);
        }

        @Override
        long lines(long at, int len) {
            return Native.lines(file, at, len);
        }
    }

    /**
     * {@code mapped-byte-buffer}: byte by byte with {@code get(index)} for lines, words with {@code
     * getLong(index)}. Buffers are views of one mapping, since a MappedByteBuffer of its own is
     * unmapped by the garbage collector; they hold at most 2^31-1 bytes, so 1 GiB each. Loops end
     * with a piece, where a safepoint may be reached.
     */
    private static final class ByteBufferScan extends Scanner {
        private static final int BUFFER_BITS = 30;
        private static final long BUFFER_BYTES = 1L << BUFFER_BITS;
        private final ByteBuffer[] buffers;

        ByteBufferScan(Job job) throws CallFailure {
            super(job);
            MemorySegment file = job.mapSpan();
            buffers = new ByteBuffer[(int) ((job.spanBytes + BUFFER_BYTES - 1) / BUFFER_BYTES)];
            for (int index = 0; index < buffers.length; index++) {
                long start = index * BUFFER_BYTES;
                MemorySegment some = file.asSlice(start, Math.min(BUFFER_BYTES, job.spanBytes - start));
                buffers[index] = some.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
            }
        }

        @Override
        long get(long offset, int len) {
            return offset;
        }

        private ByteBuffer buffer(long at) {
            return buffers[(int) (at >>> BUFFER_BITS)];
        }

        private static int base(long at) {
            return (int) (at & BUFFER_BYTES - 1);
        }

        @Override
        long touch(long at, int len) {
            return words(buffer(at), base(at), len, pageBytes);
        }

        @Override
        long sum(long at, int len) {
            return words(buffer(at), base(at), len, 8);
        }

        @Override
        long lines(long at, int len) {
            ByteBuffer buffer = buffer(at);
            int base = base(at);
            long total = 0;
            for (int index = base; index < base + len; index++) {
                total += buffer.get(index) == Words.NEWLINE ? 1 : 0;
            }
            return total;
        }

        /** The words at multiples of {@code step}. */
        private static long words(ByteBuffer buffer, int base, int len, int step) {
            long total = 0;
            int at = 0;
            for (; at <= len - 8; at += step) {
                total += buffer.getLong(base + at);
            }
            long word = 0;
            for (int index = at; index < len; index++) {
                word |= (buffer.get(base + index) & 0xffL) << 8 * (index - at);
            }
            return total + word;
        }
    }

    /**
     * {@code buffered-reader}: BufferedReader.readLine over ISO-8859-1, a string for each line.
     * Lines end with \n, \r or \r\n, and what stands behind the last end is a line too.
     */
    private static final class LineScan extends Work {
        private final Job job;
        private final FileInputStream file;

        LineScan(Job job) throws CallFailure {
            this.job = job;
            try {
                file = new FileInputStream(job.path);
            } catch (IOException error) {
                throw CallFailure.failed("open", error, job.path, 0);
            }
            job.closeLater(file::close);
        }

        @Override
        long perform(long position, long wanted) throws CallFailure {
            checksum += lines();
            bytes += job.spanBytes;
            return 1;
        }

        private long lines() throws CallFailure {
            try {
                file.getChannel().position(0);
                SpanStream span = new SpanStream(file, job.spanBytes);
                BufferedReader reader = new BufferedReader(new InputStreamReader(span, StandardCharsets.ISO_8859_1));
                long lines = 0;
                long chars = 0;
                for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                    lines++;
                    chars += line.length();
                }
                if (span.left > 0) {
                    throw CallFailure.shortRead("read", job.path, 0, job.spanBytes, job.spanBytes - span.left);
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
}
