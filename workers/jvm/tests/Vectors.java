package pagewise;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** Compares what the worker makes of workers/vectors.json, its argument, with what it must. */
final class Vectors {
    public static void main(String[] arguments) throws IOException {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            if (!line.startsWith("{")) {
                continue;
            }
            Request vector = Request.parse(line.replaceFirst(",$", ""));
            boolean same = switch (vector.type()) {
                case "gaps" -> gaps(vector);
                case "stalls" -> stalls(vector);
                case "latencies" -> latencies(vector);
                default -> false;
            };
            if (!same) {
                System.err.println("the worker does not reproduce " + line);
                System.exit(1);
            }
        }
    }

    private static boolean gaps(Request vector) {
        Policy policy = new Policy(0, 0, vector.number("gap_min_ns"), vector.number("gap_max_ns"),
                vector.count("gap_measures"), 0, 0);
        Gaps gaps = new Gaps(vector.number("seed"), policy);
        long[] took = vector.numbers("op_ns");
        long[] drawn = new long[took.length];
        long[] grows = new long[took.length];
        for (int index = 0; index < took.length; index++) {
            drawn[index] = gaps.draw();
            grows[index] = gaps.adapt(drawn[index], drawn[index] * took[index]) ? 1 : 0;
        }
        return Arrays.equals(drawn, vector.numbers("gaps")) && Arrays.equals(grows, vector.numbers("grows"));
    }

    private static boolean stalls(Request vector) {
        Stalls stalls = new Stalls(vector.number("stall_ns"));
        long[] operations = vector.numbers("operations");
        for (int index = 0; index < operations.length; index++) {
            stalls.note(operations[index], vector.numbers("took_ns")[index]);
        }
        return stalls.count == vector.number("stalls") && stalls.longestNs == vector.number("stall_longest_ns");
    }

    private static boolean latencies(Request vector) {
        Histogram latencies = new Histogram();
        Arrays.stream(vector.numbers("took_ns")).forEach(latencies::record);
        return Arrays.equals(latencies.ends(), vector.numbers("latency_ns"))
                && Arrays.equals(latencies.counts(), vector.numbers("latency_counts"));
    }
}
