package pagewise;

import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Makes the writer of a job. */
final class Writers {
    static Work open(Job job) throws CallFailure {
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

    /** The mapping, the cursor in the ring, and what is not synced yet. */
    private static abstract class Writer extends Work {
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
}
