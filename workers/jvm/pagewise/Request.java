package pagewise;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** A line of pagewise's. */
final class Request {
    private final String line;
    private int at;
    /** String, Long (without sign) or long[]. */
    private final Map<String, Object> fields = new HashMap<>();

    private Request(String line) {
        this.line = line;
    }

    static Request parse(String line) throws IOException {
        Request request = new Request(line);
        request.object();
        return request;
    }

    String type() throws IOException {
        return text("type");
    }

    String text(String key) throws IOException {
        if (fields.get(key) instanceof String value) {
            return value;
        }
        throw new IOException("not of the protocol: no text '" + key + "' in " + line);
    }

    long number(String key) {
        if (fields.get(key) instanceof Long value) {
            return value;
        }
        throw new IllegalArgumentException("not of the protocol: no number '" + key + "' in " + line);
    }

    /** A number of 2^63 or more stands for no bound. */
    long bound(String key) {
        long value = number(key);
        return value < 0 ? Long.MAX_VALUE : value;
    }

    int count(String key) {
        return Math.toIntExact(number(key));
    }

    boolean flag(String key) {
        return number(key) == 1;
    }

    long[] numbers(String key) {
        if (fields.get(key) instanceof long[] value) {
            return value;
        }
        throw new IllegalArgumentException("not of the protocol: no numbers '" + key + "' in " + line);
    }

    private void object() throws IOException {
        expect('{');
        if (!accept('}')) {
            do {
                String key = string();
                expect(':');
                fields.put(key, value());
            } while (accept(','));
            expect('}');
        }
        skipSpace();
        if (at < line.length()) {
            throw malformed();
        }
    }

    private Object value() throws IOException {
        skipSpace();
        char first = at < line.length() ? line.charAt(at) : 0;
        if (first == '"') {
            return string();
        }
        if (first != '[') {
            return integer();
        }
        at++;
        long[] values = new long[16];
        int count = 0;
        if (!accept(']')) {
            do {
                values = count == values.length ? Arrays.copyOf(values, 2 * count) : values;
                values[count++] = integer();
            } while (accept(','));
            expect(']');
        }
        return Arrays.copyOf(values, count);
    }

    private long integer() throws IOException {
        skipSpace();
        int start = at;
        while (at < line.length() && line.charAt(at) >= '0' && line.charAt(at) <= '9') {
            at++;
        }
        try {
            if (at - start > 1 && line.charAt(start) == '0') {
                throw malformed();
            }
            return Long.parseUnsignedLong(line, start, at, 10);
        } catch (NumberFormatException overflow) {
            throw malformed();
        }
    }

    private String string() throws IOException {
        expect('"');
        StringBuilder value = new StringBuilder();
        while (at < line.length()) {
            char character = line.charAt(at++);
            if (character == '"') {
                return value.toString();
            }
            if (character < ' ') {
                break;
            }
            value.append(character == '\\' ? escaped() : character);
        }
        throw malformed();
    }

    private char escaped() throws IOException {
        char character = at < line.length() ? line.charAt(at++) : 0;
        switch (character) {
            case '"', '\\', '/':
                return character;
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                if (at + 4 <= line.length() && line.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) {
                    at += 4;
                    return (char) Integer.parseInt(line, at - 4, at, 16);
                }
                throw malformed();
            default:
                throw malformed();
        }
    }

    private void skipSpace() {
        while (at < line.length() && " \t\r\n".indexOf(line.charAt(at)) >= 0) {
            at++;
        }
    }

    private boolean accept(char character) {
        skipSpace();
        boolean there = at < line.length() && line.charAt(at) == character;
        at += there ? 1 : 0;
        return there;
    }

    private void expect(char character) throws IOException {
        if (!accept(character)) {
            throw malformed();
        }
    }

    private IOException malformed() {
        return new IOException("not of the protocol: byte " + at + " of " + line);
    }
}
