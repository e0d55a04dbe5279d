package pagewise;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Opening and mapping files, and memory beside them. */
final class Files {
    static FileChannel openChannel(String path, StandardOpenOption... access) throws CallFailure {
        try {
            return FileChannel.open(Path.of(path), access);
        } catch (IOException error) {
            throw CallFailure.failed("open", error, path, 0);
        }
    }

    /**
     * Maps the first {@code bytes} of a file, which must be there: a mapping for writing would make
     * it longer.
     */
    static MemorySegment map(
            FileChannel channel, FileChannel.MapMode mode, String path, long bytes, Arena arena) throws CallFailure {
        try {
            long size = channel.size();
            if (size < bytes) {
                String detail = path + " has " + size + " bytes, and " + bytes + " of it are to be mapped";
                throw new CallFailure("mmap", 0, path, 0, detail, false);
            }
            return channel.map(mode, 0, bytes, arena);
        } catch (IOException error) {
            throw CallFailure.failed("mmap", error, path, 0);
        }
    }

    /**
     * Memory for the bytes of a read or of records, all zeros. It is not of an arena that is
     * closed: such a one counts the calls that use it, all threads in the same place.
     */
    static MemorySegment nativeBuffer(long bytes, long alignment) {
        return Arena.ofAuto().allocate(bytes, alignment).fill((byte) 0);
    }
}
