package pagewise;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;

/** Makes the readers of a job, one for each thread. */
final class Readers {
    static Work[] open(Job job) throws CallFailure {
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
                    + "bytes or more says where the next one is, and none is known ahead", true);
        }
        Reader[] readers = new Reader[job.threads];
        Opened opened = null;
        for (int thread = 0; thread < readers.length; thread++) {
            opened = opened == null || job.perThread ? openFile(job) : opened;
            readers[thread] = opened.reader(new Part(job, thread));
        }
        return readers;
    }

    /** The file, opened or mapped for one reader or for all. */
    private interface Opened {
        Reader reader(Part part) throws CallFailure;
    }

    private static Opened openFile(Job job) throws CallFailure {
        if (job.word.equals("mmap")) {
            MemorySegment file = job.mapSpan();
            return job.has("in-place") ? part -> new InPlace(part, file) : part -> new Copied(part, file);
        }
        if (job.word.equals("pread")) {
            boolean direct = job.has("direct");
            int descriptor = job.descriptor(direct);
            return direct ? part -> new PreadDirect(part, descriptor) : part -> new Pread(part, descriptor);
        }
        FileChannel channel = job.channel(StandardOpenOption.READ);
        return job.has("heap-buffer")
                ? part -> new ChannelHeap(part, channel) : part -> new ChannelDirect(part, channel);
    }

    /** Bytes come into a byte array. */
    private abstract static class HeapReader extends Reader {
        final byte[] buffer;

        HeapReader(Part part, Prefetcher prefetcher) {
            super(part, prefetcher);
            buffer = new byte[readBytes];
        }

        @Override
        final long touch(long at) {
            return Heap.touch(buffer, buffer.length, touchAt, pageBytes, last);
        }

        @Override
        final long sum(long at) {
            return Heap.sum(buffer, buffer.length);
        }

        @Override
        final long word(long at) {
            return Heap.word(buffer, 0);
        }

        @Override
        final void fetch(long offset, MemorySegment into) throws CallFailure {
            get(offset);
            MemorySegment.copy(buffer, 0, into, ValueLayout.JAVA_BYTE, 0, buffer.length);
        }
    }

    /** Bytes are in a mapping, or come into native memory. */
    private abstract static class NativeReader extends Reader {
        final MemorySegment memory;

        NativeReader(Part part, MemorySegment memory, Prefetcher prefetcher) {
            super(part, prefetcher);
            this.memory = memory;
        }

        @Override
        final long touch(long at) {
            return Native.touch(memory, at, readBytes, touchAt, pageBytes, last);
        }

        @Override
        final long sum(long at) {
            return Native.sum(memory, at, readBytes);
        }

        @Override
        final long word(long at) {
            return Native.word(memory, at);
        }

        @Override
        final void fetch(long offset, MemorySegment into) throws CallFailure {
            MemorySegment.copy(memory, get(offset), into, 0, readBytes);
        }
    }

    /** {@code mmap}: bytes of a MemorySegment are copied to a byte array. */
    private static final class Copied extends HeapReader {
        private final MemorySegment file;

        Copied(Part part, MemorySegment file) {
            super(part, Prefetcher.of(part, file));
            this.file = file;
        }

        @Override
        long get(long offset) {
            MemorySegment.copy(file, ValueLayout.JAVA_BYTE, offset, buffer, 0, buffer.length);
            return 0;
        }
    }

    /** {@code mmap:in-place}: bytes are consumed in the mapping. */
    private static final class InPlace extends NativeReader {
        InPlace(Part part, MemorySegment file) {
            super(part, file, Prefetcher.of(part, file));
        }

        @Override
        long get(long offset) {
            return offset;
        }
    }

    /**
     * {@code pread}: pread(2) by the foreign-function interface into native memory. The call leaves
     * the Java state, as one that may block must: a critical one would hold up every safepoint.
     */
    private static final class Pread extends NativeReader {
        private final int descriptor;
        private final MemorySegment state = Libc.state();

        Pread(Part part, int descriptor) {
            super(part, Files.nativeBuffer(part.job.readBytes, part.job.pageBytes), null);
            this.descriptor = descriptor;
        }

        @Override
        long get(long offset) throws CallFailure {
            long received = Libc.pread(state, descriptor, memory, readBytes, offset);
            if (received != readBytes) {
                throw CallFailure.read("pread", state, part.job.path, offset, readBytes, received);
            }
            return 0;
        }
    }

    /** {@code pread:direct}: the same with O_DIRECT, reads widened to its alignment. */
    private static final class PreadDirect extends NativeReader {
        private final int descriptor;
        private final long alignment;
        private final long fileBytes;
        private final MemorySegment state = Libc.state();

        PreadDirect(Part part, int descriptor) throws CallFailure {
            super(part, buffer(part.job), null);
            this.descriptor = descriptor;
            alignment = part.job.directAlignment;
            fileBytes = part.job.fileBytes;
            // O_DIRECT may be accepted at open and refused at the first transfer.
            if (Libc.pread(state, descriptor, memory, alignment, 0) < 0) {
                throw CallFailure.refused("pread(O_DIRECT)", Libc.errno(state), part.job.path);
            }
        }

        /** For the widest read. */
        private static MemorySegment buffer(Job job) throws CallFailure {
            long alignment = job.directAlignment;
            if (Long.bitCount(alignment) != 1) {
                throw job.refusal("an alignment of " + alignment + " bytes is no power of two", false);
            }
            long widest = (job.readBytes + alignment - 1) / alignment * alignment + alignment;
            return Files.nativeBuffer(widest, Math.max(alignment, job.pageBytes));
        }

        @Override
        long get(long offset) throws CallFailure {
            long start = offset & -alignment;
            long end = offset + readBytes + alignment - 1 & -alignment;
            long expected = Math.min(end, fileBytes) - start;
            long received = Libc.pread(state, descriptor, memory, end - start, start);
            if (received != expected) {
                throw CallFailure.read("pread(O_DIRECT)", state, part.job.path, start, expected, received);
            }
            return offset - start;
        }
    }

    /**
     * {@code filechannel:direct-buffer}: FileChannel.read at a position into memory outside the
     * heap.
     */
    private static final class ChannelDirect extends NativeReader {
        private final FileChannel channel;
        private final ByteBuffer buffer;

        ChannelDirect(Part part, FileChannel channel) {
            this(part, channel, ByteBuffer.allocateDirect(part.job.readBytes));
        }

        private ChannelDirect(Part part, FileChannel channel, ByteBuffer buffer) {
            super(part, MemorySegment.ofBuffer(buffer), null);
            this.channel = channel;
            this.buffer = buffer;
        }

        @Override
        long get(long offset) throws CallFailure {
            Readers.read(channel, buffer, part, offset);
            return 0;
        }
    }

    /**
     * {@code filechannel:heap-buffer}: the same into a byte array, by way of the thread's own
     * native buffer.
     */
    private static final class ChannelHeap extends HeapReader {
        private final FileChannel channel;
        private final ByteBuffer bytes = ByteBuffer.wrap(buffer);

        ChannelHeap(Part part, FileChannel channel) {
            super(part, null);
            this.channel = channel;
        }

        @Override
        long get(long offset) throws CallFailure {
            Readers.read(channel, bytes, part, offset);
            return 0;
        }
    }

    /** Fills a buffer by FileChannel.read. */
    private static void read(FileChannel channel, ByteBuffer buffer, Part part, long offset) throws CallFailure {
        int received;
        try {
            received = channel.read(buffer.clear(), offset);
        } catch (IOException error) {
            throw CallFailure.failed("pread", error, part.job.path, offset);
        }
        if (received != buffer.capacity()) {
            throw CallFailure.shortRead("pread", part.job.path, offset, buffer.capacity(), received);
        }
    }
}
