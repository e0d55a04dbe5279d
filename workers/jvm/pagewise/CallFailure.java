package pagewise;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Set;

/** A call that failed, as the protocol carries it. */
final class CallFailure extends Exception {
    private static final long serialVersionUID = 1;
    /**
     * EPERM, EACCES, ENODEV, EINVAL, ENOSYS, EOPNOTSUPP: what a machine answers that does not offer
     * something.
     */
    private static final Set<Integer> NOT_OFFERED = Set.of(1, 13, 19, 22, 38, 95);

    private final String call;
    private final int errno;
    private final String path;
    private final long offset;
    private final boolean unavailable;

    CallFailure(String call, int errno, String path, long offset, String detail, boolean unavailable) {
        super(detail);
        this.call = call;
        this.errno = errno;
        this.path = path;
        this.offset = offset;
        this.unavailable = unavailable;
    }

    /** A call that should work everywhere. */
    static CallFailure failed(String call, int errno, String path, long offset) {
        return failed(call, errno, path, offset, Libc.strerror(errno));
    }

    /** The same where the JDK made the call. */
    static CallFailure failed(String call, IOException error, String path, long offset) {
        int errno = Failures.errno(error);
        return failed(call, errno, path, offset, errno == 0 ? error.toString() : Libc.strerror(errno));
    }

    private static CallFailure failed(String call, int errno, String path, long offset, String why) {
        String where = offset == 0 ? path : "offset " + offset + " of " + path;
        return new CallFailure(call, errno, path, offset, call + " failed at " + where + ": " + why, false);
    }

    /** A call that some kernels, filesystems or policies refuse. */
    static CallFailure refused(String call, int errno, String path) {
        String detail = call + " was refused for " + path + ": " + Libc.strerror(errno);
        return new CallFailure(call, errno, path, 0, detail, NOT_OFFERED.contains(errno));
    }

    /**
     * A read that did not bring what it should: -1 and errno in {@code state}, or too few bytes.
     */
    static CallFailure read(
            String call, MemorySegment state, String path, long offset, long expected, long received) {
        return received < 0 ? failed(call, Libc.errno(state), path, offset)
                : shortRead(call, path, offset, expected, received);
    }

    static CallFailure shortRead(String call, String path, long offset, long expected, long received) {
        String detail = call + " at offset " + offset + " of " + path + " returned " + Math.max(0, received)
                + " of " + expected + " bytes";
        return new CallFailure(call, 0, path, offset, detail, false);
    }

    /**
     * A fault in a mapping (SIGBUS): the JVM reports it as an InternalError, in the thread that
     * accessed it.
     */
    static CallFailure fault(InternalError error, String path) {
        return new CallFailure("mmap", 0, path, 0, "an access to the mapping failed: " + error.getMessage(), false);
    }

    Json reply() {
        return new Json().text("type", "failed").text("call", call).number("errno", errno).text("path", path)
                .number("offset", offset).text("detail", getMessage()).number("unavailable", unavailable ? 1 : 0);
    }
}
