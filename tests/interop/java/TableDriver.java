package interop;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.apache.paimon.Snapshot;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.stats.ColStats;
import org.apache.paimon.stats.Statistics;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.sink.StreamTableCommit;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.TableRead;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.Pair;

/**
 * What the tests ask of Java's Paimon, in bulk: rows travel as JSON lines, requests as one JSON object.
 *
 * <p>Requests know {@code user}, {@code identifier}, {@code options}, {@code overwrite} (a partition), {@code compact}.
 */
public final class TableDriver {
    private TableDriver() {}

    public static void create(String directory, String definition) throws Exception {
        JsonNode node = Rendering.parse(definition);
        Schema.Builder schema = Schema.newBuilder();
        for (JsonNode field : node.get("fields")) {
            schema.column(field.get("name").asText(), DataTypeJsonParser.parseDataType(field.get("type")));
        }
        schema.primaryKey(texts(node.get("primaryKeys")));
        schema.partitionKeys(texts(node.get("partitionKeys")));
        schema.options(options(node.get("options")));
        new SchemaManager(LocalFileIO.create(), new Path(directory)).createTable(schema.build());
    }

    public static String read(String directory, String request) throws Exception {
        JsonNode asked = Rendering.parse(request);
        FileStoreTable table = table(directory, asked);
        boolean kinds = asked.path("kinds").asBoolean();
        RowType type = table.rowType();
        List<String> lines = new ArrayList<>();
        ReadBuilder builder = table.newReadBuilder();
        TableRead read = builder.newRead();
        for (Split split : builder.newScan().plan().splits()) {
            try (RecordReaderIterator<InternalRow> rows = new RecordReaderIterator<>(read.createReader(split))) {
                while (rows.hasNext()) {
                    InternalRow row = rows.next();
                    Map<String, Object> out = Rendering.row(row, type);
                    if (kinds) {
                        out.put("_ROW_KIND", row.getRowKind().shortString());
                    }
                    lines.add(Rendering.write(out));
                }
            }
        }
        return String.join("\n", lines);
    }

    /** The planned files, and the rows read of them, for a column that equals a value; no row is filtered later. */
    public static String countEqual(String directory, String request) throws Exception {
        JsonNode asked = Rendering.parse(request);
        FileStoreTable table = table(directory, asked);
        JsonNode value = asked.get("value");
        Object literal = value.isInt() ? (Object) value.asInt() : BinaryString.fromString(value.asText());
        PredicateBuilder conditions = new PredicateBuilder(table.rowType());
        ReadBuilder builder =
                table.newReadBuilder().withFilter(conditions.equal(asked.get("column").asInt(), literal));
        int files = 0;
        int rows = 0;
        for (Split split : builder.newScan().plan().splits()) {
            files += ((DataSplit) split).dataFiles().size();
            try (RecordReaderIterator<InternalRow> found =
                    new RecordReaderIterator<>(builder.newRead().createReader(split))) {
                for (; found.hasNext(); rows++) {
                    found.next();
                }
            }
        }
        return "[" + files + "," + rows + "]";
    }

    public static void write(String directory, String lines, String request) throws Exception {
        JsonNode asked = Rendering.parse(request);
        FileStoreTable table = table(directory, asked);
        String user = asked.path("user").asText("java");
        long identifier = asked.path("identifier").asLong(1);
        IOManager spill = IOManager.create(System.getProperty("java.io.tmpdir"));
        try (TableWriteImpl<?> write = table.newWrite(user);
                TableCommitImpl commit = table.newCommit(user)) {
            write.withIOManager(spill);
            BucketRouter rows = lines.isEmpty() ? write::write : BucketRouter.of(table, write, user, spill);
            if (asked.has("overwrite")) {
                write.withIgnorePreviousFiles(true);
                commit.withOverwrite(options(asked.get("overwrite")));
            }
            for (String line : lines.split("\n")) {
                if (!line.isEmpty()) {
                    rows.write(parse(Rendering.parse(line), table.rowType()));
                }
            }
            if (asked.path("compact").asBoolean()) {
                compactAll(table, write);
            }
            commit(commit, write, identifier);
        }
    }

    /** One writer and many commits, with identifiers from the one asked for on; a batch of lines ends with a dot. */
    public static void stream(String directory, String batches, String request) throws Exception {
        JsonNode asked = Rendering.parse(request);
        FileStoreTable table = table(directory, asked);
        String user = asked.path("user").asText("java");
        long identifier = asked.path("identifier").asLong(1);
        try (TableWriteImpl<?> write = table.newWrite(user);
                TableCommitImpl commit = table.newCommit(user)) {
            commit.ignoreEmptyCommit(false);
            IOManager spill = IOManager.create(System.getProperty("java.io.tmpdir"));
            write.withIOManager(spill);
            BucketRouter rows = BucketRouter.of(table, write, user, spill);
            for (String line : batches.split("\n")) {
                if (line.equals(".")) {
                    commit(commit, write, identifier++);
                } else {
                    rows.write(parse(Rendering.parse(line), table.rowType()));
                }
            }
        }
    }

    public static void compact(String directory, String request) throws Exception {
        write(directory, "", request.replaceFirst("\\{", "{\"compact\":true" + (request.contains(":") ? "," : "")));
    }

    /** Java's own view of a snapshot, as JSON; the latest for id 0. */
    public static String snapshot(String directory, long id) {
        FileStoreTable table = table(directory, Rendering.parse("{}"));
        Snapshot snapshot = id == 0 ? table.snapshotManager().latestSnapshot() : table.snapshotManager().snapshot(id);
        return snapshot == null ? "null" : snapshot.toJson();
    }

    /** The statistics of the latest snapshot as JSON: texts made values, and values made texts again. */
    public static String statistics(String directory) {
        FileStoreTable table = table(directory, Rendering.parse("{}"));
        Statistics stored = table.statistics().get();
        stored.deserializeFieldsFromString(table.schema());
        Map<String, ColStats<?>> columns = new LinkedHashMap<>();
        stored.colStats().forEach((name, column) -> columns.put(name, again(column)));
        Statistics again =
                new Statistics(
                        stored.snapshotId(),
                        stored.schemaId(),
                        stored.mergedRecordCount().getAsLong(),
                        stored.mergedRecordSize().getAsLong(),
                        columns);
        again.serializeFieldsToString(table.schema());
        return again.toJson();
    }

    private static <T> ColStats<T> again(ColStats<T> column) {
        return ColStats.newColStats(
                column.colId(),
                orNull(column.distinctCount()),
                column.min().orElse(null),
                column.max().orElse(null),
                orNull(column.nullCount()),
                orNull(column.avgLen()),
                orNull(column.maxLen()));
    }

    private static Long orNull(OptionalLong value) {
        return value.isPresent() ? value.getAsLong() : null;
    }

    private static void commit(StreamTableCommit commit, TableWriteImpl<?> write, long identifier) throws Exception {
        commit.commit(identifier, write.prepareCommit(true, identifier));
    }

    private static void compactAll(FileStoreTable table, TableWriteImpl<?> write) throws Exception {
        List<ManifestEntry> files = table.store().newScan().plan().files();
        for (Pair<BinaryRow, Integer> bucket :
                files.stream().map(e -> Pair.of(e.partition().copy(), e.bucket())).distinct().collect(Collectors.toList())) {
            write.compact(bucket.getLeft(), bucket.getRight(), true);
        }
    }

    private static GenericRow parse(JsonNode line, RowType type) {
        GenericRow row = Rendering.parseRow(line, type);
        row.setRowKind(RowKind.fromShortString(line.path("_ROW_KIND").asText("+I")));
        return row;
    }

    private static FileStoreTable table(String directory, JsonNode asked) {
        FileStoreTable table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(directory));
        Map<String, String> options = options(asked.get("options"));
        String branch = options.remove("branch");
        table = branch == null ? table : table.switchToBranch(branch);
        return options.isEmpty() ? table : table.copy(options);
    }

    private static Map<String, String> options(JsonNode node) {
        Map<String, String> out = new LinkedHashMap<>();
        if (node != null) {
            for (Iterator<Map.Entry<String, JsonNode>> it = node.fields(); it.hasNext(); ) {
                Map.Entry<String, JsonNode> entry = it.next();
                out.put(entry.getKey(), entry.getValue().asText());
            }
        }
        return out;
    }

    private static List<String> texts(JsonNode node) {
        List<String> out = new ArrayList<>();
        if (node != null) {
            node.forEach(value -> out.add(value.asText()));
        }
        return out;
    }
}
