package pagewise;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A line of pagewise's: a flat object of strings, integers up to 64 bits without sign, and arrays
 * of them.
 */
final class Request {
    private static final String STRING = "\"((?:[^\"\\\\]++|\\\\.)*+)\"";
    private static final String VALUE = "(?:" + STRING + "|([0-9]++)|\\[([0-9,\\s]*+)\\])";
    /** Key, value, and what stands behind: a comma or the end. */
    private static final Pattern FIELD =
            Pattern.compile("\\s*+" + STRING + "\\s*+:\\s*+" + VALUE + "\\s*+(,|}\\s*+$)");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(u([0-9a-fA-F]{4})|.)");

    private final String line;
    /** String, Long (without sign) or long[]. */
    private final Map<String, Object> fields = new HashMap<>();

    private Request(String line) {
        this.line = line;
    }

    static Request parse(String line) throws IOException {
        Request request = new Request(line);
        Matcher field = FIELD.matcher(line);
        int at = line.startsWith("{") ? 1 : 0;
        try {
            do {
                if (at == 0 || !field.region(at, line.length()).lookingAt()) {
                    throw new IllegalArgumentException("no field");
                }
                request.fields.put(plain(field.group(1)), value(field));
                at = field.end();
            } while (field.group(5).equals(","));
        } catch (IllegalArgumentException malformed) {
            throw new IOException("not of the protocol: byte " + at + " of " + line);
        }
        return request;
    }

    private static Object value(Matcher field) {
        if (field.group(2) != null) {
            return plain(field.group(2));
        }
        if (field.group(3) != null) {
            return Long.parseUnsignedLong(field.group(3));
        }
        String numbers = field.group(4).strip();
        return numbers.isEmpty() ? new long[0]
                : Arrays.stream(numbers.split(",", -1)).map(String::strip).mapToLong(Long::parseUnsignedLong).toArray();
    }

    /** A string without its escapes. */
    private static String plain(String text) {
        return text.indexOf('\\') < 0 ? text
                : ESCAPE.matcher(text).replaceAll(escape -> Matcher.quoteReplacement(escape.group(2) == null
                        ? escaped(escape.group(1)) : Character.toString(Integer.parseInt(escape.group(2), 16))));
    }

    private static String escaped(String letter) {
        int at = "\"\\/bfnrt".indexOf(letter);
        if (at < 0) {
            throw new IllegalArgumentException("an unknown escape");
        }
        return "\"\\/\b\f\n\r\t".substring(at, at + 1);
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
}
