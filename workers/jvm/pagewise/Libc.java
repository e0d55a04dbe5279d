package pagewise;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/** Calls of Linux; errno is captured right behind each, before the JVM makes calls of its own. */
@SuppressWarnings("restricted")
final class Libc {
    static final int MADV_RANDOM = 1;
    static final int MADV_SEQUENTIAL = 2;
    static final int MADV_WILLNEED = 3;
    /** O_RDONLY is 0; O_CLOEXEC of all architectures that there is a JDK for. */
    private static final int O_CLOEXEC = 0x80000;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");
    private static final VarHandle ERRNO =
            Linker.Option.captureStateLayout().varHandle(MemoryLayout.PathElement.groupElement("errno"));

    private static final MethodHandle OPEN = handle("open", FunctionDescriptor.of(ValueLayout.JAVA_INT,
            ValueLayout.ADDRESS, ValueLayout.JAVA_INT), CAPTURE, Linker.Option.firstVariadicArg(2));
    private static final MethodHandle CLOSE =
            handle("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT), CAPTURE);
    private static final MethodHandle PREAD = handle("pread", FunctionDescriptor.of(ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG), CAPTURE);
    /**
     * The address as a number, so that no segment is made and none is counted for a range of a
     * mapping.
     */
    private static final MethodHandle MADVISE = handle("madvise", FunctionDescriptor.of(ValueLayout.JAVA_INT,
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT), CAPTURE);
    private static final MethodHandle STRERROR =
            handle("strerror", FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_INT));

    private static MethodHandle handle(String name, FunctionDescriptor descriptor, Linker.Option... options) {
        MemorySegment function = LINKER.defaultLookup().find(name)
                .orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
        return LINKER.downcallHandle(function, descriptor, options);
    }

    /** Memory in which errno is captured: one for each thread. */
    static MemorySegment state() {
        return Arena.ofAuto().allocate(Linker.Option.captureStateLayout());
    }

    static int errno(MemorySegment state) {
        return (int) ERRNO.get(state, 0L);
    }

    /** open(2) for reading, with further flags. */
    static int open(String path, int flags, String call) throws CallFailure {
        MemorySegment state = state();
        int descriptor;
        try (Arena arena = Arena.ofConfined()) {
            descriptor = (int) OPEN.invokeExact(state, arena.allocateFrom(path), flags | O_CLOEXEC);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
        if (descriptor < 0) {
            throw flags == 0 ? CallFailure.failed(call, errno(state), path, 0)
                    : CallFailure.refused(call, errno(state), path);
        }
        return descriptor;
    }

    static void close(int descriptor, String path) throws CallFailure {
        MemorySegment state = state();
        int result;
        try {
            result = (int) CLOSE.invokeExact(state, descriptor);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
        if (result != 0) {
            throw CallFailure.failed("close", errno(state), path, 0);
        }
    }

    /** Bytes received; -1: errno is in {@code state}. */
    static long pread(MemorySegment state, int descriptor, MemorySegment into, long bytes, long offset) {
        try {
            return (long) PREAD.invokeExact(state, descriptor, into, bytes, offset);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    /** 0, or -1 and errno is in {@code state}. */
    static int madvise(MemorySegment state, long address, long bytes, int advice) {
        try {
            return (int) MADVISE.invokeExact(state, address, bytes, advice);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    /** Advice for a whole mapping, in set-up. */
    static void advise(MemorySegment mapping, int advice, String call, String path) throws CallFailure {
        MemorySegment state = state();
        if (madvise(state, mapping.address(), mapping.byteSize(), advice) != 0) {
            throw CallFailure.refused(call, errno(state), path);
        }
    }

    static String strerror(int errno) {
        try {
            MemorySegment text = (MemorySegment) STRERROR.invokeExact(errno);
            return text.reinterpret(256).getString(0);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    /** A method handle is declared to throw anything; a call of C throws nothing. */
    private static Error unexpected(Throwable thrown) {
        return thrown instanceof Error error ? error : new AssertionError(thrown);
    }
}
