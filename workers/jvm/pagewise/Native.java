package pagewise;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Consumption of {@code len} bytes from {@code base} on of a mapping or of native memory. */
final class Native {
    static long word(MemorySegment bytes, long at) {
        return bytes.get(Words.WORD_LAYOUT, at);
    }

    static long touch(MemorySegment bytes, long base, int len, int touchAt, int pageBytes, boolean last) {
        long total = 0;
        int at = touchAt;
        for (; at <= len - 8; at += pageBytes) {
            total += word(bytes, base + at);
        }
        if (at < len) {
            total += tail(bytes, base + at, base + len);
        }
        if (last) {
            total += len >= 8 ? word(bytes, base + len - 8) : tail(bytes, base, base + len);
        }
        return total;
    }

    static long sum(MemorySegment bytes, long base, int len) {
        long total = 0;
        int at = 0;
        for (; at <= len - 8; at += 8) {
            total += word(bytes, base + at);
        }
        return at < len ? total + tail(bytes, base + at, base + len) : total;
    }

    static long lines(MemorySegment bytes, long base, int len) {
        long total = 0;
        int at = 0;
        for (; at <= len - 8; at += 8) {
            total += Words.newlines(word(bytes, base + at));
        }
        for (; at < len; at++) {
            total += bytes.get(ValueLayout.JAVA_BYTE, base + at) == Words.NEWLINE ? 1 : 0;
        }
        return total;
    }

    private static long tail(MemorySegment bytes, long at, long end) {
        long word = 0;
        for (long index = at; index < end; index++) {
            word |= (bytes.get(ValueLayout.JAVA_BYTE, index) & 0xffL) << 8 * (index - at);
        }
        return word;
    }
}
