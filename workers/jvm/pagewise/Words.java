package pagewise;

import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Words of 8 bytes, little-endian; one that is cut short is padded with zeros. */
final class Words {
    static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfLong WORD_LAYOUT =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final byte NEWLINE = '\n';
    static final long NEWLINES = 0x0a0a_0a0a_0a0a_0a0aL;
    static final long LOW_BITS = 0x7f7f_7f7f_7f7f_7f7fL;

    /**
     * Number of newlines among 8 bytes: XOR makes them zero, and only a zero byte has no bit after
     * the rest.
     */
    static int newlines(long word) {
        long others = word ^ NEWLINES;
        return Long.bitCount(~((others & LOW_BITS) + LOW_BITS | others | LOW_BITS));
    }
}
