package interop;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.reader.FileRecordIterator;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.EndOfScanException;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.utils.Pair;

/** Rows of append tables as Java's engines delete them, by deletion vectors, and the compaction of such tables. */
public final class RowDriver {
    private static final int ROUNDS = 5;

    private RowDriver() {}

    /** Deletes the rows whose integer column has one of the values (a JSON array). */
    public static void delete(String directory, String column, String values, long identifier) throws Exception {
        FileStoreTable table = table(directory);
        Set<Long> wanted = new HashSet<>();
        for (JsonNode value : Rendering.parse(values)) {
            wanted.add(value.asLong());
        }
        int place = table.rowType().getFieldIndex(column);
        Map<Pair<BinaryRow, Integer>, BaseAppendDeleteFileMaintainer> buckets = new LinkedHashMap<>();
        Map<Pair<BinaryRow, Integer>, Integer> totals = new LinkedHashMap<>();
        for (Split split : table.newReadBuilder().newScan().plan().splits()) {
            DataSplit data = (DataSplit) split;
            Map<String, DeletionVector> found = find(table, data, place, wanted);
            if (!found.isEmpty()) {
                Pair<BinaryRow, Integer> bucket = Pair.of(data.partition(), data.bucket());
                totals.put(bucket, data.totalBuckets());
                found.forEach(buckets.computeIfAbsent(bucket, b -> maintainer(table, b))::notifyNewDeletionVector);
            }
        }
        List<CommitMessage> messages = new ArrayList<>();
        buckets.forEach((bucket, maintainer) -> messages.add(message(bucket, totals.get(bucket), maintainer)));
        try (TableCommitImpl commit = table.newCommit("java")) {
            commit.commit(identifier, messages);
        }
    }

    /** Compacts an append table without buckets, as far as its coordinator finds tasks. */
    public static void compact(String directory, long identifier) throws Exception {
        FileStoreTable table = table(directory);
        AppendCompactCoordinator coordinator = new AppendCompactCoordinator(table, false);
        BaseAppendFileStoreWrite write = (BaseAppendFileStoreWrite) (Object) table.store().newWrite("java");
        List<CommitMessage> messages = new ArrayList<>();
        try {
            for (int round = 0; round < ROUNDS; round++) {
                for (AppendCompactTask task : coordinator.run()) {
                    messages.add(task.doCompact(table, write));
                }
            }
        } catch (EndOfScanException end) {
            // everything was looked at
        }
        try (TableCommitImpl commit = table.newCommit("java")) {
            commit.commit(identifier, messages);
        }
        write.close();
    }

    private static Map<String, DeletionVector> find(FileStoreTable table, DataSplit split, int place, Set<Long> wanted)
            throws Exception {
        Map<String, DeletionVector> found = new LinkedHashMap<>();
        boolean wide = table.coreOptions().deletionVectorBitmap64();
        InternalRow.FieldGetter column = InternalRow.createFieldGetter(table.rowType().getTypeAt(place), place);
        try (RecordReader<InternalRow> reader = table.newReadBuilder().newRead().createReader(split)) {
            FileRecordIterator<InternalRow> rows;
            while ((rows = (FileRecordIterator<InternalRow>) reader.readBatch()) != null) {
                InternalRow row;
                while ((row = rows.next()) != null) {
                    if (!row.isNullAt(place) && wanted.contains(((Number) column.getFieldOrNull(row)).longValue())) {
                        found.computeIfAbsent(
                                        rows.filePath().getName(),
                                        name -> wide ? new Bitmap64DeletionVector() : new BitmapDeletionVector())
                                .delete(rows.returnedPosition());
                    }
                }
                rows.releaseBatch();
            }
        }
        return found;
    }

    private static BaseAppendDeleteFileMaintainer maintainer(FileStoreTable table, Pair<BinaryRow, Integer> bucket) {
        IndexFileHandler handler = table.store().newIndexFileHandler();
        Snapshot snapshot = table.snapshotManager().latestSnapshot();
        return table.bucketMode() == BucketMode.BUCKET_UNAWARE
                ? BaseAppendDeleteFileMaintainer.forUnawareAppend(handler, snapshot, bucket.getLeft())
                : BaseAppendDeleteFileMaintainer.forBucketedAppend(
                        handler, snapshot, bucket.getLeft(), bucket.getRight());
    }

    private static CommitMessage message(
            Pair<BinaryRow, Integer> bucket, int total, BaseAppendDeleteFileMaintainer maintainer) {
        List<IndexFileMeta> added = new ArrayList<>();
        List<IndexFileMeta> deleted = new ArrayList<>();
        for (IndexManifestEntry entry : maintainer.persist()) {
            (entry.kind() == FileKind.ADD ? added : deleted).add(entry.indexFile());
        }
        List<org.apache.paimon.io.DataFileMeta> none = new ArrayList<>();
        return new CommitMessageImpl(
                bucket.getLeft(),
                bucket.getRight(),
                total,
                new DataIncrement(none, none, none, added, deleted),
                CompactIncrement.emptyIncrement());
    }

    private static FileStoreTable table(String directory) {
        return FileStoreTableFactory.create(LocalFileIO.create(), new Path(directory));
    }
}
