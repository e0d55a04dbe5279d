package pagewise;

import java.lang.foreign.MemorySegment;

/** {@code prefetch}: MADV_WILLNEED of all ranges of an operation before its first read. */
final class Prefetcher {
    private final Part part;
    private final MemorySegment file;
    private final MemorySegment state = Libc.state();

    private Prefetcher(Part part, MemorySegment file) {
        this.part = part;
        this.file = file;
    }

    /** Null where the method has no such option. */
    static Prefetcher of(Part part, MemorySegment file) {
        return part.job.has("prefetch") ? new Prefetcher(part, file) : null;
    }

    /** Advises the reads of entries, each aligned outwards to whole pages. */
    void advise(long from, long to, long mask) throws CallFailure {
        for (long entry = from; entry < to; entry += 8) {
            long offset = part.offset(entry, mask);
            long begin = offset - offset % part.job.pageBytes;
            long bytes = offset + part.job.readBytes - begin;
            if (Libc.madvise(state, file.address() + begin, bytes, Libc.MADV_WILLNEED) != 0) {
                throw CallFailure.failed("madvise(MADV_WILLNEED)", Libc.errno(state), part.job.path, offset);
            }
        }
    }
}
