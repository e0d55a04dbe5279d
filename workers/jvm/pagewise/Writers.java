package pagewise;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;

/** Makes the writers of a job. */
final class Writers {
    static Work[] open(Job job) throws CallFailure {
        if (job.recordBytes < 1 || job.recordBytes > job.fileBytes || job.sourcePeriod < 1) {
            throw job.refusal("records of " + job.recordBytes + " bytes from a source of period " + job.sourcePeriod
                    + " cannot be written to a file of " + job.fileBytes + " bytes", true);
        }
        int buffer = bufferBytes(job);
        if (job.commits() && buffer > 0) {
            throw job.refusal(job.method + " collects records, and with commit none may stay in a buffer", true);
        }
        Target target = target(job);
        ByteBuffer source = source(job);
        if (job.commits()) {
            return Commits.open(job, target, source);
        }
        if (job.updates()) {
            return new Work[] {new Updates(job, target, source)};
        }
        if (buffer > 0) {
            boolean heap = source.hasArray();
            ByteBuffer bytes = heap ? ByteBuffer.allocate(buffer) : ByteBuffer.allocateDirect(buffer);
            return new Work[] {new Collected(job, target, bytes)};
        }
        boolean stored = target instanceof Target.Mapped;
        return new Work[] {stored ? new Stored(job, (Target.Mapped) target) : new Called(job, target, source)};
    }

    private static Target target(Job job) throws CallFailure {
        long syncBytes = syncBytes(job);
        boolean mapped = job.word.equals("mmap");
        if (mapped && (job.syncCall.isEmpty() || job.syncCall.equals("msync"))) {
            return new Target.Mapped(job, syncBytes);
        }
        return switch (mapped ? "none" : job.syncCall) {
            case "", "fdatasync", "fsync" -> new Target.Channel(job, syncBytes);
            case "O_DSYNC" -> new Target.Synced(job);
            default -> throw job.refusal(job.method + " does not sync by " + job.syncCall, true);
        };
    }

    /**
     * Source of the records, in the memory that the method writes from: the period and a record
     * more.
     */
    private static ByteBuffer source(Job job) {
        byte[] source = new byte[Math.addExact(job.sourcePeriod, job.recordBytes)];
        MemorySegment.copy(job.source, ValueLayout.JAVA_BYTE, 0, source, 0, source.length);
        boolean direct = job.has("direct-buffer");
        return direct ? ByteBuffer.allocateDirect(source.length).put(source) : ByteBuffer.wrap(source);
    }

    /** The size of {@code buffer=SIZE} in whole records; 0 without. */
    private static int bufferBytes(Job job) throws CallFailure {
        for (String option : job.options) {
            if (option.startsWith("buffer=")) {
                long buffer = size(option.substring("buffer=".length()));
                if (buffer < 0) {
                    throw job.unknown();
                }
                if (buffer < job.recordBytes) {
                    throw job.refusal("a record of " + job.recordBytes + " bytes does not fit into the buffer of "
                            + buffer + " bytes", true);
                }
                if (buffer > 1 << 30) {
                    throw job.refusal("a buffer of " + buffer + " bytes is no byte array; 1 GiB is", true);
                }
                return (int) buffer / job.recordBytes * job.recordBytes;
            }
        }
        return 0;
    }

    private static long syncBytes(Job job) throws CallFailure {
        if (job.sync.equals("none") || job.sync.equals("end") || job.sync.equals("commit")) {
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

    /** Source and destination of the records. */
    static abstract class Writer extends Work {
        final Target target;
        /** The period and a record more; a record that was just made would be a byte array too. */
        final byte[] source;
        final int recordBytes;
        final int period;
        private long offered;
        /** Start of the next record in the source. */
        int from;

        Writer(Job job, Target target) {
            this.target = target;
            recordBytes = job.recordBytes;
            period = job.sourcePeriod;
            source = new byte[Math.addExact(period, recordBytes)];
            MemorySegment.copy(job.source, ValueLayout.JAVA_BYTE, 0, source, 0, source.length);
        }

        @Override
        final long perform(long position, long wanted) throws CallFailure {
            if (position != offered) {
                throw new CallFailure("append", 0, target.path, 0, "record " + position
                        + " was asked for where record " + offered + " is next; they are written in order", false);
            }
            append(wanted);
            offered += wanted;
            bytes = target.written;
            return wanted;
        }

        abstract void append(long records) throws CallFailure;

        /** Puts what is collected into the file. */
        void flush() throws CallFailure { }

        @Override
        final void finish() throws CallFailure {
            flush();
            target.syncRest();
            bytes = target.written;
        }

        @Override
        final void sync() throws CallFailure {
            target.syncAll();
        }

        @Override
        final Histogram syncs() {
            return target.syncs;
        }
    }

    /** {@code mmap}: records are copied to where they come to lie. */
    private static final class Stored extends Writer {
        private final MemorySegment file;

        Stored(Job job, Target.Mapped target) {
            super(job, target);
            file = target.file;
        }

        /**
         * Timed: {@code for each record: copy(source + from, file + to), from = (from + record) %
         * period}.
         */
        private void store(long at, long end) {
            int step = recordBytes % period;
            int next = from;
            for (long to = at; to < end; to += recordBytes) {
                MemorySegment.copy(source, next, file, ValueLayout.JAVA_BYTE, to, recordBytes);
                next += step;
                next -= next >= period ? period : 0;
            }
            from = next;
        }

        /** A piece ends at the end of the ring, or with the record after which a sync is due. */
        @Override
        void append(long records) throws CallFailure {
            long left = records * recordBytes;
            while (left > 0) {
                long piece = Math.min(left, target.ringBytes - target.cursor);
                if (target.untilSync() < piece) {
                    piece = Math.min(piece, (target.untilSync() + recordBytes - 1) / recordBytes * recordBytes);
                }
                store(target.cursor, target.cursor + piece);
                left -= piece;
                if (target.advance(piece)) {
                    target.syncNow();
                }
            }
        }
    }

    /** {@code filechannel}: a call for each record, from where it is. */
    private static final class Called extends Writer {
        private final ByteBuffer records;

        Called(Job job, Target target, ByteBuffer records) {
            super(job, target);
            this.records = records;
        }

        /** Timed: {@code for each record: put(source + from), from = (from + record) % period}. */
        @Override
        void append(long count) throws CallFailure {
            int step = recordBytes % period;
            int next = from;
            for (long left = count; left > 0; left--) {
                target.put(records, next, recordBytes);
                next += step;
                next -= next >= period ? period : 0;
            }
            from = next;
        }
    }

    /**
     * {@code buffer=SIZE}: whole records are collected, and put into the file when the next one
     * does not fit. With an array at both ends a record of 16 bytes is copied in half the time that
     * memory outside the heap takes.
     */
    private static final class Collected extends Writer {
        private final ByteBuffer buffer;
        /** Null: the buffer is outside the heap. */
        private final byte[] array;
        private int filled;

        Collected(Job job, Target target, ByteBuffer buffer) {
            super(job, target);
            this.buffer = buffer;
            array = buffer.hasArray() ? buffer.array() : null;
        }

        /** Timed: as of {@link Stored}, into the buffer. */
        private void collect(int at, int end) {
            int step = recordBytes % period;
            int next = from;
            for (int to = at; to < end; to += recordBytes) {
                if (array != null) {
                    System.arraycopy(source, next, array, to, recordBytes);
                } else {
                    buffer.put(to, source, next, recordBytes);
                }
                next += step;
                next -= next >= period ? period : 0;
            }
            from = next;
        }

        @Override
        void append(long records) throws CallFailure {
            long left = records * recordBytes;
            while (left > 0) {
                if (filled == buffer.capacity()) {
                    flush();
                }
                int some = (int) Math.min(left, buffer.capacity() - filled);
                buffer.clear();
                collect(filled, filled + some);
                filled += some;
                left -= some;
            }
        }

        @Override
        void flush() throws CallFailure {
            target.put(buffer, 0, filled);
            filled = 0;
        }
    }
}
