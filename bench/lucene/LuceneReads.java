import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.NoMergePolicy;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.store.NIOFSDirectory;

/**
 * Lucene's stored fields, for replay.py. `LuceneReads make INDEX DOCUMENTS` writes an index of one
 * segment. `LuceneReads nio|mmap INDEX READS THREADS` has each thread read so many documents at
 * random, all from one reader.
 */
public final class LuceneReads {
    private static final int FIELD_BYTES = 900;

    public static void main(String[] words) throws Exception {
        Path index = Path.of(words[1]);
        int count = Integer.parseInt(words[2]);
        switch (words[0]) {
            case "make" -> make(index, count);
            case "nio" -> read(new NIOFSDirectory(index), count, Integer.parseInt(words[3]));
            case "mmap" -> read(new MMapDirectory(index), count, Integer.parseInt(words[3]));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void make(Path index, int documents) throws IOException {
        IndexWriterConfig config = new IndexWriterConfig(null);
        config.setRAMBufferSizeMB(1024);
        config.setUseCompoundFile(false);
        config.setMergePolicy(NoMergePolicy.INSTANCE);
        Random random = new Random(5);
        byte[] field = new byte[FIELD_BYTES];
        try (Directory directory = new NIOFSDirectory(index); IndexWriter writer = new IndexWriter(directory, config)) {
            for (int number = 0; number < documents; number++) {
                random.nextBytes(field);
                Document document = new Document();
                document.add(new StoredField("body", field.clone()));
                writer.addDocument(document);
            }
        }
    }

    private static void read(Directory directory, int reads, int threads) throws Exception {
        try (directory; DirectoryReader reader = DirectoryReader.open(directory)) {
            long[] sums = new long[threads];
            List<Thread> running = new ArrayList<>();
            for (int number = 0; number < threads; number++) {
                int thread = number;
                Thread one = new Thread(() -> sums[thread] = sum(reader, reads, new Random(thread)));
                one.start();
                running.add(one);
            }
            for (Thread one : running) {
                one.join();
            }
            System.out.println(reader.leaves().size() + " " + sums[0]);
        }
    }

    private static long sum(DirectoryReader reader, int reads, Random random) {
        try {
            StoredFields fields = reader.storedFields();
            long sum = 0;
            for (int read = 0; read < reads; read++) {
                sum += fields.document(random.nextInt(reader.maxDoc())).getBinaryValue("body").bytes[0];
            }
            return sum;
        } catch (IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }
}
