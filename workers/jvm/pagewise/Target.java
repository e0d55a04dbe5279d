package pagewise;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * The destination of records: a ring of whole ones in the file, the cursor in it, and what is not
 * synced yet.
 */
abstract class Target {
    final String path;
    /** Bytes of the file that records may take: whole ones. */
    final long ringBytes;
    private final long fileBytes;
    /**
     * Bytes after which a sync is due; {@link Long#MAX_VALUE} without syncs within the measured
     * region.
     */
    private final long syncBytes;
    private long unsynced;
    /** True if records are anywhere, so that a sync covers all. */
    private final boolean anywhere;
    /** Offset in the file of the next byte. */
    long cursor;
    /** Bytes that reached the file. */
    long written;
    /** Durations of the syncs within the measured region. */
    final Histogram syncs = new Histogram();

    Target(Job job, long syncBytes) {
        path = job.path;
        fileBytes = job.fileBytes;
        ringBytes = job.fileBytes / job.recordBytes * job.recordBytes;
        this.syncBytes = syncBytes;
        anywhere = job.updates();
    }

    /** Puts bytes of a buffer at an offset of the file. */
    abstract void put(ByteBuffer from, int at, int len, long offset) throws CallFailure;

    /** Fills a buffer with bytes from an offset of the file on. */
    abstract void get(ByteBuffer into, long offset) throws CallFailure;

    /**
     * Waits until two ranges are on the device: up to {@code end}, and from the start of the file
     * to {@code again}.
     */
    abstract void sync(long from, long end, long again) throws CallFailure;

    /**
     * Puts bytes at the cursor; where the end of the ring lies between, the second part at its
     * start.
     */
    final void put(ByteBuffer from, int at, int len) throws CallFailure {
        boolean due = false;
        for (int done = 0; done < len;) {
            int some = (int) Math.min(len - done, ringBytes - cursor);
            put(from, at + done, some, cursor);
            due |= advance(some);
            done += some;
        }
        if (due) {
            syncNow();
        }
    }

    /** Puts bytes at an offset of the file, and syncs if that is due. */
    final void putAt(ByteBuffer from, int at, int len, long offset) throws CallFailure {
        put(from, at, len, offset);
        written += len;
        unsynced += len;
        if (unsynced >= syncBytes) {
            syncNow();
        }
    }

    /**
     * Counts bytes that reached the file at the cursor, not beyond the end of the ring. Whether a
     * sync is due.
     */
    final boolean advance(long count) {
        written += count;
        unsynced += count;
        cursor += count;
        cursor = cursor == ringBytes ? 0 : cursor;
        return unsynced >= syncBytes;
    }

    /** Bytes after which a sync is due. */
    final long untilSync() {
        return syncBytes - unsynced;
    }

    /** Syncs what is not synced: in two parts where the end of the ring lies between. */
    final void syncNow() throws CallFailure {
        long begun = System.nanoTime();
        if (unsynced >= ringBytes || anywhere) {
            sync(0, ringBytes, 0);
        } else if (unsynced <= cursor) {
            sync(cursor - unsynced, cursor, 0);
        } else {
            sync(ringBytes - (unsynced - cursor), ringBytes, cursor);
        }
        syncs.record(System.nanoTime() - begun);
        unsynced = 0;
    }

    /** Syncs the rest at the end of the measured region, if syncs belong to it. */
    final void syncRest() throws CallFailure {
        if (syncBytes != Long.MAX_VALUE && unsynced > 0) {
            syncNow();
        }
    }

    final void syncAll() throws CallFailure {
        sync(0, fileBytes, 0);
    }

    /** {@code mmap}: the whole file, mapped. Buffers are byte arrays. */
    static final class Mapped extends Target {
        final MemorySegment file;

        Mapped(Job job, long syncBytes) throws CallFailure {
            super(job, syncBytes);
            file = job.mapWritable();
        }

        @Override
        void put(ByteBuffer from, int at, int len, long offset) {
            MemorySegment.copy(from.array(), at, file, ValueLayout.JAVA_BYTE, offset, len);
        }

        @Override
        void get(ByteBuffer into, long offset) {
            MemorySegment.copy(file, ValueLayout.JAVA_BYTE, offset, into.array(), 0, into.capacity());
        }

        @Override
        void sync(long from, long end, long again) throws CallFailure {
            force(from, end);
            if (again > 0) {
                force(0, again);
            }
        }

        /** msync(2). */
        private void force(long from, long end) throws CallFailure {
            try {
                file.asSlice(from, end - from).force();
            } catch (UncheckedIOException error) {
                throw CallFailure.failed("msync", error.getCause(), path, from);
            }
        }
    }

    /**
     * {@code filechannel}: FileChannel.write, and read between updates, at a position; of a byte
     * array by way of the thread's own native buffer.
     */
    static class Channel extends Target {
        private final FileChannel channel;
        private final String call;

        Channel(Job job, long syncBytes, StandardOpenOption... more) throws CallFailure {
            super(job, syncBytes);
            List<StandardOpenOption> access = new ArrayList<>(List.of(more));
            access.add(StandardOpenOption.WRITE);
            if (job.updates()) {
                access.add(StandardOpenOption.READ);
            }
            channel = job.channel(access.toArray(StandardOpenOption[]::new));
            call = job.syncCall;
        }

        @Override
        void put(ByteBuffer from, int at, int len, long offset) throws CallFailure {
            from.clear().position(at).limit(at + len);
            try {
                for (long to = offset; from.hasRemaining();) {
                    to += channel.write(from, to);
                }
            } catch (IOException error) {
                throw CallFailure.failed("pwrite", error, path, offset);
            }
        }

        @Override
        void get(ByteBuffer into, long offset) throws CallFailure {
            into.clear();
            try {
                for (long from = offset; into.hasRemaining();) {
                    int received = channel.read(into, from);
                    if (received < 0) {
                        throw new CallFailure("pread", 0, path, offset, path + " ends at offset " + from, false);
                    }
                    from += received;
                }
            } catch (IOException error) {
                throw CallFailure.failed("pread", error, path, offset);
            }
        }

        @Override
        void sync(long from, long end, long again) throws CallFailure {
            try {
                channel.force(call.equals("fsync"));
            } catch (IOException error) {
                throw CallFailure.failed(call, error, path, 0);
            }
        }
    }

    /** The same with O_DSYNC: each write is a sync. Several threads write at once with commits. */
    static final class Synced extends Channel {
        Synced(Job job) throws CallFailure {
            super(job, Long.MAX_VALUE, StandardOpenOption.DSYNC);
        }

        @Override
        void put(ByteBuffer from, int at, int len, long offset) throws CallFailure {
            long begun = System.nanoTime();
            super.put(from, at, len, offset);
            long took = System.nanoTime() - begun;
            synchronized (syncs) {
                syncs.record(took);
            }
        }
    }
}
