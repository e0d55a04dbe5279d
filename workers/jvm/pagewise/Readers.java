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
                copy(table.get(Words.WORD_LAYOUT, entry));
                total += weight(entry) * Heap.touch(buffer, buffer.length, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                copy(table.get(Words.WORD_LAYOUT, entry));
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
                total += weight(entry) * Native.touch(file, table.get(Words.WORD_LAYOUT, entry), readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                total += weight(entry) * Native.sum(file, table.get(Words.WORD_LAYOUT, entry), readBytes);
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
                    prefetch(table.get(Words.WORD_LAYOUT, entry));
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
            buffer = Files.nativeBuffer(readBytes, pageBytes);
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
                call(table.get(Words.WORD_LAYOUT, entry));
                total += weight(entry) * Native.touch(buffer, 0, readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(Words.WORD_LAYOUT, entry));
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
            buffer = Files.nativeBuffer(widest, Math.max(alignment, pageBytes));
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
                long inner = call(table.get(Words.WORD_LAYOUT, entry));
                total += weight(entry) * Native.touch(buffer, inner, readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                long inner = call(table.get(Words.WORD_LAYOUT, entry));
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
                call(table.get(Words.WORD_LAYOUT, entry));
                total += weight(entry) * Native.touch(memory, 0, readBytes, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(Words.WORD_LAYOUT, entry));
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
                call(table.get(Words.WORD_LAYOUT, entry));
                total += weight(entry) * Heap.touch(bytes, bytes.length, pageBytes, last);
            }
            return total;
        }

        @Override
        long sum(long from, long to) throws CallFailure {
            long total = 0;
            for (long entry = from; entry < to; entry += 8) {
                call(table.get(Words.WORD_LAYOUT, entry));
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
}
