package pagewise;

/** Consumption of a byte array. */
final class Heap {
    static long word(byte[] bytes, int at) {
        return (long) Words.WORD.get(bytes, at);
    }

    static long touch(byte[] bytes, int len, int touchAt, int pageBytes, boolean last) {
        long total = 0;
        int at = touchAt;
        for (; at <= len - 8; at += pageBytes) {
            total += word(bytes, at);
        }
        if (at < len) {
            total += tail(bytes, at, len);
        }
        if (last) {
            total += len >= 8 ? word(bytes, len - 8) : tail(bytes, 0, len);
        }
        return total;
    }

    static long sum(byte[] bytes, int len) {
        long total = 0;
        int at = 0;
        for (; at <= len - 8; at += 8) {
            total += word(bytes, at);
        }
        return at < len ? total + tail(bytes, at, len) : total;
    }

    static long lines(byte[] bytes, int len) {
        long total = 0;
        int at = 0;
        for (; at <= len - 8; at += 8) {
            total += Words.newlines(word(bytes, at));
        }
        for (; at < len; at++) {
            total += bytes[at] == Words.NEWLINE ? 1 : 0;
        }
        return total;
    }

    private static long tail(byte[] bytes, int at, int len) {
        long word = 0;
        for (int index = at; index < len; index++) {
            word |= (bytes[index] & 0xffL) << 8 * (index - at);
        }
        return word;
    }
}
