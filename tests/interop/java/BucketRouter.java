package interop;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.paimon.crosspartition.GlobalIndexAssigner;
import org.apache.paimon.crosspartition.IndexBootstrap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.table.sink.TableWriteImpl;

/** Writes each row to the bucket that Java assigns to it, in all bucket modes; one task assigns all rows. */
interface BucketRouter {
    void write(InternalRow row) throws Exception;

    static BucketRouter of(FileStoreTable table, TableWriteImpl<?> write, String user, IOManager spill)
            throws Exception {
        switch (table.bucketMode()) {
            case HASH_DYNAMIC:
                return byHash(table, write, user);
            case KEY_DYNAMIC:
                return byKey(table, write, spill);
            default:
                return write::write;
        }
    }

    private static BucketRouter byHash(FileStoreTable table, TableWriteImpl<?> write, String user) {
        HashBucketAssigner assigner =
                new HashBucketAssigner(
                        table.snapshotManager(), user, table.store().newIndexFileHandler(), 1, 1, 0,
                        table.coreOptions().dynamicBucketTargetRowNum(), table.coreOptions().dynamicBucketMaxBuckets());
        RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
        return row -> write.write(row, assigner.assign(keys.partition(row), keys.trimmedPrimaryKey(row).hashCode()));
    }

    private static BucketRouter byKey(FileStoreTable table, TableWriteImpl<?> write, IOManager spill) throws Exception {
        GlobalIndexAssigner assigner = new GlobalIndexAssigner(table);
        assigner.open(
                64L << 20, spill, 1, 0,
                (row, bucket) -> {
                    try {
                        write.write(row, bucket);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
        new IndexBootstrap(table)
                .bootstrap(
                        1, 0,
                        row -> {
                            try {
                                assigner.bootstrapKey(row);
                            } catch (IOException e) {
                                throw new UncheckedIOException(e);
                            }
                        });
        assigner.endBoostrap(false);
        return assigner::processInput;
    }
}
