package pagewise;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * pagewise's worker in the JVM: the ways that Java has to read and write a file, measured as
 * workers/PROTOCOL.md says.
 *
 * <p>JDK 22 or newer, standard library only. Run with {@code --enable-native-access=ALL-UNNAMED}.
 *
 * <p>Nothing is allocated between two clocks, except where the way itself does (a {@code readLine}
 * makes a string).
 */
public final class Worker {
    private static final int PROTOCOL = 1;
    private static final String VERSION = "1.0";

    private final BufferedReader requests;
    private final OutputStream replies;

    private Worker(InputStream requests, OutputStream replies) {
        this.requests = new BufferedReader(new InputStreamReader(requests, StandardCharsets.UTF_8));
        this.replies = replies;
    }

    /**
     * Serves jobs until stdin ends. Whatever is not the failure of a call ends the process with
     * status 1.
     */
    public static void main(String[] arguments) {
        OutputStream replies = new FileOutputStream(FileDescriptor.out);
        // A stray line on stdout would be taken for an answer.
        System.setOut(System.err);
        Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> die(thrown));
        Worker worker = new Worker(System.in, replies);
        try {
            worker.converse();
        } catch (Throwable thrown) {
            die(thrown);
        }
        // Threads of a job that failed may still wait; nobody waits for them.
        System.exit(0);
    }

    /** Ends the process at once, the reason on stderr. */
    static void die(Throwable thrown) {
        try {
            thrown.printStackTrace();
        } finally {
            Runtime.getRuntime().halt(1);
        }
    }

    private void converse() throws IOException {
        Json hello = new Json().text("type", "hello").number("protocol", PROTOCOL).text("worker", "jvm")
                .text("version", VERSION + " on JDK " + Runtime.version()).number("worker_warmup", 1);
        hello.text("sync_calls", "fdatasync,fsync,msync,O_DSYNC").number("commit_threads", Commits.MAX_THREADS);
        for (String workload : List.of("random-read", "sequential-read", "scan", "append", "fill", "update")) {
            hello.text(workload, Offers.methods(workload));
        }
        say(hello);
        try {
            for (Request open = next(); open != null; open = next()) {
                if (!open.type().equals("open")) {
                    throw new IOException("not of the protocol: '" + open.type() + "' outside a job");
                }
                if (!serve(new Job(open))) {
                    return;
                }
            }
        } catch (CallFailure failure) {
            say(failure.reply());
        } catch (InternalError error) {
            say(CallFailure.fault(error, "").reply());
        }
    }

    /** One job, from {@code open} to {@code closed}. False: stdin ended within it. */
    private boolean serve(Job job) throws IOException, CallFailure {
        job.mapInputs();
        long started = System.nanoTime();
        job.open();
        say(new Json().text("type", "opened").number("setup_ns", System.nanoTime() - started));
        JobThreads threads = new JobThreads(job);
        Heartbeats heartbeats = Heartbeats.start(job.heartbeatNs);
        started = System.nanoTime();
        job.warmPageTables();
        say(new Json().text("type", "ready").number("warmup_ns", System.nanoTime() - started));
        for (Request request = next(); request != null; request = next()) {
            switch (request.type()) {
                case "idle" -> say(idle(request, heartbeats));
                case "go" -> say(threads.sample(request, heartbeats));
                case "verify" -> say(job.verify(request.numbers("offsets")));
                case "close" -> {
                    heartbeats.end();
                    say(close(job, threads));
                    return true;
                }
                default -> throw new IOException("not of the protocol: '" + request.type() + "' within a job");
            }
        }
        return false;
    }

    private static Json idle(Request request, Heartbeats heartbeats) {
        heartbeats.begin();
        long end = System.nanoTime() + request.bound("idle_ns");
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
        heartbeats.finish();
        return heartbeats.addTo(new Json().text("type", "idled"));
    }

    /** Tear-down: sync, end threads, unmap, close. */
    private static Json close(Job job, JobThreads threads) throws CallFailure {
        long started = System.nanoTime();
        long syncNs = 0;
        if (job.sync.equals("end")) {
            job.work[0].sync();
            syncNs = System.nanoTime() - started;
        }
        threads.end();
        job.close();
        return new Json().text("type", "closed").number("teardown_ns", System.nanoTime() - started)
                .number("sync_ns", syncNs);
    }

    private Request next() throws IOException {
        String line = requests.readLine();
        return line == null ? null : Request.parse(line);
    }

    private void say(Json reply) throws IOException {
        replies.write(reply.line());
        replies.flush();
    }
}
