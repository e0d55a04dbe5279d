package pagewise;

import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Counts of times. Values below 256 have buckets of their own; above, a power of two is divided
 * into 128, so that no bucket is wider than 1/128 of its value.
 */
final class Histogram {
    private static final int BUCKETS = 256 + 55 * 128;
    private final long[] counts = new long[BUCKETS];

    void clear() {
        Arrays.fill(counts, 0);
    }

    void record(long value) {
        long known = Math.max(value, 0);
        int shift = Math.max(56 - Long.numberOfLeadingZeros(known), 0);
        counts[shift * 128 + (int) (known >>> shift)]++;
    }

    void add(Histogram other) {
        for (int index = 0; index < BUCKETS; index++) {
            counts[index] += other.counts[index];
        }
    }

    /** Upper ends of the buckets that hold something, ascending. */
    long[] ends() {
        return held().mapToLong(Histogram::end).toArray();
    }

    /** Their counts. */
    long[] counts() {
        return held().mapToLong(index -> counts[index]).toArray();
    }

    private IntStream held() {
        return IntStream.range(0, BUCKETS).filter(index -> counts[index] > 0);
    }

    private static long end(int index) {
        int shift = Math.max(index / 128 - 1, 0);
        return ((long) (index - shift * 128) + 1 << shift) - 1;
    }
}
