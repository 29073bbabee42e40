package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.postpone.BucketFiles;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.PostponeUtils;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.InnerTableRead;

/** Moves postponed rows to real buckets with the parts of Java's Paimon that its engines use, partition by partition. */
public final class PostponeDriver {
    private PostponeDriver() {}

    public static void compact(String directory, int buckets, String user, long identifier) throws Exception {
        FileStoreTable table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(directory));
        Map<BinaryRow, Integer> known = PostponeUtils.getKnownNumBuckets(table);
        Map<BinaryRow, List<DataSplit>> partitions = new LinkedHashMap<>();
        for (DataSplit split : table.newSnapshotReader().withBucket(BucketMode.POSTPONE_BUCKET).read().dataSplits()) {
            partitions.computeIfAbsent(split.partition(), partition -> new ArrayList<>()).add(split);
        }
        List<CommitMessage> messages = new ArrayList<>();
        for (Map.Entry<BinaryRow, List<DataSplit>> entry : partitions.entrySet()) {
            int total = known.getOrDefault(entry.getKey(), buckets);
            move(table, total, entry.getValue(), user, identifier, messages);
        }
        try (TableCommitImpl commit = table.newCommit(user)) {
            commit.commit(identifier, messages);
        }
    }

    private static void move(
            FileStoreTable table, int total, List<DataSplit> splits, String user, long identifier, List<CommitMessage> messages)
            throws Exception {
        Map<String, String> options = new LinkedHashMap<>();
        options.put("bucket", String.valueOf(total));
        options.put("write-only", "false");
        InnerTableRead read = (InnerTableRead) table.newRead();
        read.forceKeepDelete();
        try (TableWriteImpl<?> write = table.copy(options).newWrite(user)) {
            write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
            for (DataSplit split : splits) {
                DataSplit unmerged =
                        DataSplit.builder()
                                .withSnapshot(split.snapshotId())
                                .withPartition(split.partition())
                                .withBucket(split.bucket())
                                .withBucketPath(split.bucketPath())
                                .withTotalBuckets(split.totalBuckets())
                                .withDataFiles(split.dataFiles())
                                .isStreaming(true)
                                .rawConvertible(false)
                                .build();
                try (RecordReaderIterator<InternalRow> rows = new RecordReaderIterator<>(read.createReader(unmerged))) {
                    while (rows.hasNext()) {
                        InternalRow row = rows.next();
                        write.write(row, write.getBucket(row));
                    }
                }
                CompactIncrement removed =
                        new CompactIncrement(split.dataFiles(), Collections.emptyList(), Collections.emptyList());
                messages.add(
                        new CommitMessageImpl(
                                split.partition(), split.bucket(), split.totalBuckets(), DataIncrement.emptyIncrement(), removed));
            }
            for (CommitMessage message : write.prepareCommit(true, identifier)) {
                CommitMessageImpl prepared = (CommitMessageImpl) message;
                BucketFiles files =
                        new BucketFiles(
                                table.store().pathFactory().createDataFilePathFactory(prepared.partition(), prepared.bucket()),
                                table.fileIO());
                files.update(prepared);
                messages.add(files.makeMessage(prepared.partition(), prepared.bucket()));
            }
        }
    }
}
