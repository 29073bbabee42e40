package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.globalindex.btree.BTreeGlobalIndexBuilder;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;

/** Global indexes as Java builds them, and the rows that it reads with them. */
public final class GlobalIndexDriver {
    private GlobalIndexDriver() {}

    /** Builds a B-tree index of a column; returns the number of index files. */
    public static int build(String directory, String column, String options) throws Exception {
        FileStoreTable table = table(directory, options);
        BTreeGlobalIndexBuilder builder = new BTreeGlobalIndexBuilder(table).withIndexField(column);
        IOManager spill = IOManager.create(System.getProperty("java.io.tmpdir"));
        List<CommitMessage> messages = new ArrayList<>();
        for (DataSplit split : BTreeGlobalIndexBuilder.splitByContiguousRowRange(builder.scan().get().getRight())) {
            messages.addAll(builder.build(split, spill));
        }
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.commit(messages);
        }
        return messages.size();
    }

    /** Returns the first column of the rows that Java reads for a condition on a column, without filtering rows. */
    public static String select(String directory, int column, String operator, String value) throws Exception {
        FileStoreTable table = table(directory, "{}");
        PredicateBuilder conditions = new PredicateBuilder(table.rowType());
        ReadBuilder builder = table.newReadBuilder().withFilter(condition(conditions, column, operator, value));
        List<String> found = new ArrayList<>();
        for (Split split : builder.newScan().plan().splits()) {
            try (RecordReaderIterator<InternalRow> rows =
                    new RecordReaderIterator<>(builder.newRead().createReader(split))) {
                while (rows.hasNext()) {
                    found.add(Integer.toString(rows.next().getInt(0)));
                }
            }
        }
        Collections.sort(found);
        return "[" + String.join(",", found) + "]";
    }

    private static Predicate condition(PredicateBuilder conditions, int column, String operator, String value) {
        JsonNode node = value.isEmpty() ? null : Rendering.parse(value);
        Object literal =
                node == null ? null : node.isInt() ? (Object) node.asInt() : BinaryString.fromString(node.asText());
        switch (operator) {
            case "=":
                return conditions.equal(column, literal);
            case "<":
                return conditions.lessThan(column, literal);
            case ">=":
                return conditions.greaterOrEqual(column, literal);
            default:
                return conditions.isNull(column);
        }
    }

    private static FileStoreTable table(String directory, String options) throws Exception {
        FileStoreTable table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(directory));
        java.util.Map<String, String> given = new java.util.HashMap<>();
        Rendering.parse(options).fields().forEachRemaining(entry -> given.put(entry.getKey(), entry.getValue().asText()));
        return table.copy(given);
    }
}
