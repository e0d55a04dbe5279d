package pagewise;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The offers of the worker: {@code hello} is made of it, jobs are checked by it, and pagewise
 * itself reads it.
 */
final class Offers {
    /**
     * A line for each word of a method: how its bytes move, as the kernel sees it, and the options
     * that it takes in each workload. {@code -}: it is not for it; {@code none}: it takes none;
     * {@code a|b}: one of them must be written, before the others. Of {@code buffer=SIZE} any size
     * is taken. The last column is for people.
     */
    private static final String TABLE = """
            word                access  reads                                         scan                                 append                                  fill                                    update                     by
            mmap                mmap    random,sequential,willneed,prefetch,in-place  random,sequential,willneed,in-place  buffer=64KiB                            buffer=64KiB                            random                     a MemorySegment of FileChannel.map
            mapped-byte-buffer  mmap    -                                             none                                 -                                       -                                       -                          a MappedByteBuffer of FileChannel.map
            pread               pread   direct                                        -                                    -                                       -                                       -                          pread(2) by the foreign function interface
            filechannel         pread   direct-buffer|heap-buffer                     -                                    direct-buffer|heap-buffer,buffer=64KiB  direct-buffer|heap-buffer,buffer=64KiB  direct-buffer|heap-buffer  FileChannel.read and write at a position
            buffered-reader     read    -                                             none                                 -                                       -                                       -                          BufferedReader.readLine
            """;
    /** Tried by {@code conformance} beside each option by itself. */
    private static final String COMBINED = "mmap:random+prefetch+in-place";

    private Offers() { }

    /** A workload's column: a word, then its options. */
    private static List<String[]> column(String workload) {
        List<String[]> lines = TABLE.lines().map(line -> line.split(" +")).toList();
        int column = Arrays.asList(lines.get(0)).indexOf(workload.endsWith("-read") ? "reads" : workload);
        List<String[]> taken = new ArrayList<>();
        for (String[] line : lines.subList(1, column < 0 ? 1 : lines.size())) {
            if (!line[column].equals("-")) {
                taken.add(new String[] {line[0], line[column].equals("none") ? "" : line[column]});
            }
        }
        return taken;
    }

    /** The options of a column of which one must be written, or the others. */
    private static List<String> options(String[] taken, boolean required) {
        List<String> options = new ArrayList<>();
        for (String some : taken[1].isEmpty() ? new String[0] : taken[1].split(",")) {
            if (some.contains("|") == required) {
                options.addAll(List.of(some.split("\\|")));
            }
        }
        return options;
    }

    /**
     * The methods for a workload: each word, with each of the options that it needs, and with each
     * of the others.
     */
    static String methods(String workload) {
        List<String> methods = new ArrayList<>();
        for (String[] taken : column(workload)) {
            List<String> required = options(taken, true);
            if (required.isEmpty()) {
                methods.add(taken[0]);
            }
            required.forEach(option -> methods.add(taken[0] + ":" + option));
            String with = taken[0] + ":" + (required.isEmpty() ? "" : required.get(0) + "+");
            options(taken, false).forEach(option -> methods.add(with + option));
        }
        if (workload.endsWith("-read")) {
            methods.add(COMBINED);
        }
        return String.join(",", methods);
    }

    /** Refuses what the workload does not know, so that nothing is measured under a wrong name. */
    static void check(Job job) throws CallFailure {
        Set<String> names = new HashSet<>(job.options.stream().map(Offers::name).toList());
        for (String[] taken : column(job.workload)) {
            List<String> required = options(taken, true);
            Set<String> known = new HashSet<>(required);
            options(taken, false).forEach(option -> known.add(name(option)));
            long chosen = required.stream().filter(names::contains).count();
            if (taken[0].equals(job.word) && known.containsAll(names) && names.size() == job.options.size()
                    && chosen == Math.min(1, required.size())) {
                return;
            }
        }
        throw job.unknown();
    }

    /** An option without its value. */
    private static String name(String option) {
        return option.replaceFirst("=.*", "=");
    }
}
