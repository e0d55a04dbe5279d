package pagewise;

import java.nio.charset.StandardCharsets;

/** An answer that is being written. */
final class Json {
    private final StringBuilder text = new StringBuilder("{");

    private Json key(String key) {
        text.append(text.length() == 1 ? "\"" : ",\"").append(key).append("\":");
        return this;
    }

    Json text(String key, String value) {
        key(key).text.append('"');
        for (int index = 0; index < value.length(); index++) {
            char character = value.charAt(index);
            if (character == '"' || character == '\\') {
                text.append('\\').append(character);
            } else if (character < ' ' || Character.isSurrogate(character)) {
                text.append(String.format("\\u%04x", (int) character));
            } else {
                text.append(character);
            }
        }
        text.append('"');
        return this;
    }

    Json number(String key, long value) {
        key(key).text.append(Long.toUnsignedString(value));
        return this;
    }

    Json numbers(String key, long[] values) {
        key(key).text.append('[');
        for (int index = 0; index < values.length; index++) {
            text.append(index == 0 ? "" : ",").append(Long.toUnsignedString(values[index]));
        }
        text.append(']');
        return this;
    }

    byte[] line() {
        return (text + "}\n").getBytes(StandardCharsets.UTF_8);
    }
}
