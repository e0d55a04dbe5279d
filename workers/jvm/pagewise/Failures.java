package pagewise;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;

/** Meanings of the JDK's exceptions. */
final class Failures {
    private static final int ENOENT = 2;
    private static final int EACCES = 13;
    private static final int LAST_ERRNO = 133;

    /** errno behind an exception of the JDK, which keeps the text alone; 0: none was found. */
    static int errno(IOException error) {
        if (error instanceof NoSuchFileException) {
            return ENOENT;
        }
        if (error instanceof AccessDeniedException) {
            return EACCES;
        }
        String text = error instanceof FileSystemException failed ? failed.getReason() : error.getMessage();
        for (int errno = 1; text != null && errno <= LAST_ERRNO; errno++) {
            String known = Libc.strerror(errno);
            if (text.equals(known) || text.endsWith("(" + known + ")")) {
                return errno;
            }
        }
        return 0;
    }
}
