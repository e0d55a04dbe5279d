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
        switch (job.word) {
            case "mmap" -> job.allow("random", "sequential", "willneed", "in-place");
            case "mapped-byte-buffer", "buffered-reader" -> job.allow();
            default -> throw job.unknown();
        }
        boolean words = job.consume.equals("touch") || job.consume.equals("sum");
        if (!words && !job.consume.equals("lines") || words && job.word.equals("buffered-reader")) {
            throw job.refusal("there is no '" + job.consume + "' of a scan by " + job.method, true);
        }
        if (job.consume.equals("touch") && (job.pageBytes < 8 || Scanner.PIECE_BYTES % job.pageBytes != 0)) {
            throw job.refusal("pieces of " + Scanner.PIECE_BYTES + " bytes are no whole pages of " + job.pageBytes, true);
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
        private final byte[] buffer = new byte[Scanner.PIECE_BYTES];

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
            for (long offset = 0; offset < spanBytes; offset += Scanner.PIECE_BYTES) {
                total += Heap.touch(buffer, copy(offset), pageBytes, false);
            }
            return total;
        }

        @Override
        long sum() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += Scanner.PIECE_BYTES) {
                total += Heap.sum(buffer, copy(offset));
            }
            return total;
        }

        @Override
        long lines() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += Scanner.PIECE_BYTES) {
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
            for (long offset = 0; offset < spanBytes; offset += Scanner.PIECE_BYTES) {
                total += Native.touch(file, offset, pieceAt(offset), pageBytes, false);
            }
            return total;
        }

        @Override
        long sum() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += Scanner.PIECE_BYTES) {
                total += Native.sum(file, offset, pieceAt(offset));
            }
            return total;
        }

        @Override
        long lines() {
            long total = 0;
            for (long offset = 0; offset < spanBytes; offset += Scanner.PIECE_BYTES) {
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
                for (int piece = 0; piece < buffer.limit(); piece += Scanner.PIECE_BYTES) {
                    total += touch(buffer, piece, Math.min(Scanner.PIECE_BYTES, buffer.limit() - piece));
                }
            }
            return total;
        }

        @Override
        long sum() {
            long total = 0;
            for (ByteBuffer buffer : buffers) {
                for (int piece = 0; piece < buffer.limit(); piece += Scanner.PIECE_BYTES) {
                    total += sum(buffer, piece, Math.min(Scanner.PIECE_BYTES, buffer.limit() - piece));
                }
            }
            return total;
        }

        @Override
        long lines() {
            long total = 0;
            for (ByteBuffer buffer : buffers) {
                for (int piece = 0; piece < buffer.limit(); piece += Scanner.PIECE_BYTES) {
                    total += lines(buffer, piece, Math.min(Scanner.PIECE_BYTES, buffer.limit() - piece));
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
                total += buffer.get(at) == Words.NEWLINE ? 1 : 0;
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
}
