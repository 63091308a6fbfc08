import java.io.BufferedReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;

/**
 * Writes and reads record batches with Kafka's own classes.
 *
 * Lines of the first file are batches in hexadecimal. The second file gets, with tabs between:
 * "read" and the description of each of those, in order, or an exclamation mark and the reason why
 * Kafka cannot read it; "wrote", name, hexadecimal and description of batches that Kafka makes
 * itself; and "error", number, name and whether it may be retried, of every error code.
 */
public final class GoldenBatches {
    private static final long NOW = 1_700_000_000_000L;
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        try (BufferedReader asked = Files.newBufferedReader(Path.of(arguments[0]));
                PrintStream answers = new PrintStream(
                        Files.newOutputStream(Path.of(arguments[1])), false, StandardCharsets.UTF_8)) {
            for (String line = asked.readLine(); line != null; line = asked.readLine()) {
                answers.println("read\t" + described(HEX.parseHex(line)));
            }
            for (CompressionType codec : CompressionType.values()) {
                write(answers, codec);
            }
            writeSpecial(answers);
            for (Errors error : Errors.values()) {
                answers.println("error\t" + error.code() + "\t" + error.name() + "\t"
                        + (error.exception() instanceof RetriableException));
            }
        }
    }

    private static void write(PrintStream answers, CompressionType codec) {
        String prefix = codec.name.toLowerCase() + " ";
        show(answers, prefix + "one", plain(codec), List.of(new SimpleRecord(NOW, bytes("k"), bytes("v"))));
        show(answers, prefix + "nulls", plain(codec), List.of(
                new SimpleRecord(NOW, (byte[]) null, null),
                new SimpleRecord(NOW, new byte[0], new byte[0]),
                new SimpleRecord(NOW, bytes("k"), null),
                new SimpleRecord(NOW, null, bytes("v"))));
        show(answers, prefix + "headers", plain(codec), List.of(
                new SimpleRecord(NOW, bytes("k"), bytes("v"), new Header[] {
                    new RecordHeader("a", bytes("1")), new RecordHeader("a", null),
                    new RecordHeader("", new byte[0]), new RecordHeader("ключ", new byte[300])})));
        show(answers, prefix + "times", plain(codec), List.of(
                new SimpleRecord(NOW, null, bytes("first")),
                new SimpleRecord(NOW - 86_400_000L, null, bytes("a day earlier")),
                new SimpleRecord(0, null, bytes("1970")),
                new SimpleRecord(253_402_300_799_999L, null, bytes("9999"))));
        show(answers, prefix + "many", plain(codec), many(150, codec.id));
        show(answers, prefix + "large", plain(codec), List.of(
                new SimpleRecord(NOW, new byte[70], new byte[9_000]),
                new SimpleRecord(NOW, new byte[200], new byte[64])));
        show(answers, prefix + "transactional", new Shape(codec, TimestampType.CREATE_TIME, 42, (short) 7,
                Integer.MAX_VALUE - 1, true, 99), many(5, 1));
        show(answers, prefix + "idempotent", new Shape(codec, TimestampType.CREATE_TIME, 43, (short) 0, 0, false,
                -1), many(3, 2));
        show(answers, prefix + "log append time", new Shape(codec, TimestampType.LOG_APPEND_TIME, -1, (short) -1,
                -1, false, 5), many(3, 3));
    }

    private static void writeSpecial(PrintStream answers) {
        show(answers, "no timestamp", plain(CompressionType.NONE), List.of(new SimpleRecord(-1, null, bytes("v"))));
        for (ControlRecordType type : List.of(ControlRecordType.COMMIT, ControlRecordType.ABORT)) {
            MemoryRecords marker = MemoryRecords.withEndTransactionMarker(
                    0, NOW, -1, 42, (short) 7, new EndTransactionMarker(type, 3));
            show(answers, "marker " + type.name().toLowerCase(), marker.buffer());
        }
    }

    private record Shape(CompressionType codec, TimestampType timestampType, long producerId, short producerEpoch,
            int baseSequence, boolean isTransactional, int leaderEpoch) {}

    private static Shape plain(CompressionType codec) {
        return new Shape(codec, TimestampType.CREATE_TIME, -1, (short) -1, -1, false, -1);
    }

    private static List<SimpleRecord> many(int count, long seed) {
        Random random = new Random(seed);
        List<SimpleRecord> records = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            byte[] value = bytes(Long.toString(random.nextLong()).repeat(random.nextInt(6)));
            records.add(new SimpleRecord(NOW + i * 3, bytes("key-" + i), value));
        }
        return records;
    }

    private static void show(PrintStream answers, String name, Shape shape, List<SimpleRecord> records) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(1 << 20),
                RecordBatch.MAGIC_VALUE_V2, Compression.of(shape.codec).build(), shape.timestampType, 1000L,
                NOW + 500, shape.producerId, shape.producerEpoch, shape.baseSequence, shape.isTransactional, false,
                shape.leaderEpoch, 1 << 20);
        records.forEach(builder::append);
        show(answers, name, builder.build().buffer());
    }

    private static void show(PrintStream answers, String name, ByteBuffer buffer) {
        byte[] batch = new byte[buffer.remaining()];
        buffer.duplicate().get(batch);
        answers.println("wrote\t" + name + "\t" + HEX.formatHex(batch) + "\t" + described(batch));
    }

    private static String described(byte[] bytes) {
        try {
            StringBuilder text = new StringBuilder();
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
                batch.ensureValid();
                describe(batch, text);
            }
            return text.toString();
        } catch (RuntimeException error) {
            return "!" + error;
        }
    }

    private static void describe(MutableRecordBatch batch, StringBuilder text) {
        text.append(String.join(" ", "" + batch.baseOffset(), "" + batch.lastOffset(), "" + batch.sizeInBytes(),
                "" + batch.partitionLeaderEpoch(), "" + batch.maxTimestamp(), "" + batch.producerId(),
                "" + batch.producerEpoch(), "" + batch.baseSequence(), "" + batch.lastSequence(),
                "" + batch.countOrNull(), batch.compressionType().name, batch.timestampType().name,
                "" + batch.isTransactional(), "" + batch.isControlBatch()));
        for (Record record : batch) {
            text.append(";").append(record.offset()).append(" ").append(record.timestamp());
            text.append(" ").append(hex(record.key())).append(" ").append(hex(record.value()));
            for (Header header : record.headers()) {
                text.append(" ").append(HEX.formatHex(bytes(header.key()))).append("=").append(
                        header.value() == null ? "null" : HEX.formatHex(header.value()));
            }
        }
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "null";
        }
        byte[] content = new byte[buffer.remaining()];
        buffer.duplicate().get(content);
        return HEX.formatHex(content);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
