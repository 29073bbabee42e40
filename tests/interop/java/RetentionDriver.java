package interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.operation.LocalOrphanFilesClean;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.source.EndOfScanException;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;

/** Java's own upkeep of a table, one verb a call; requests are JSON objects. */
public final class RetentionDriver {
    private RetentionDriver() {}

    public static String run(String directory, String verb, String request) throws Exception {
        JsonNode asked = Rendering.parse(request);
        FileStoreTable table = table(directory, asked);
        switch (verb) {
            case "expire":
                return Integer.toString(table.newExpireSnapshots().config(kept(asked)).expire());
            case "expire-changelogs":
                return Integer.toString(table.newExpireChangelog().config(kept(asked)).expire());
            case "create-tag":
                createTag(table, asked);
                return "";
            case "delete-tag":
                table.deleteTag(asked.get("name").asText());
                return "";
            case "create-branch":
                table.createBranch(asked.get("name").asText(), asked.get("tag").asText());
                return "";
            case "delete-branch":
                table.deleteBranch(asked.get("name").asText());
                return "";
            case "fast-forward":
                table.fastForward(asked.get("name").asText());
                return "";
            case "rollback":
                table.rollbackTo(asked.get("snapshot").asLong());
                return "";
            case "rollback-to-tag":
                table.rollbackTo(asked.get("tag").asText());
                return "";
            case "consumer":
                table.consumerManager().resetConsumer(asked.get("name").asText(), new Consumer(asked.get("next").asLong()));
                return "";
            case "auto-tags":
                table.store().newTagAutoManager(table).getTagAutoCreation().run();
                return "";
            case "orphans":
                return orphans(table, asked);
            case "changes":
                return changes(table, asked.get("from").asLong());
            case "follow":
                return follow(table, asked);
            case "names":
                return names(table);
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private static ExpireConfig kept(JsonNode asked) {
        ExpireConfig.Builder config = ExpireConfig.builder();
        config.snapshotRetainMin(asked.path("min").asInt(1)).snapshotRetainMax(asked.path("max").asInt(1));
        config.snapshotTimeRetain(Duration.ofDays(1));
        if (asked.has("changelogMax")) {
            config.changelogRetainMin(asked.path("changelogMin").asInt(1)).changelogRetainMax(asked.get("changelogMax").asInt());
        }
        return config.build();
    }

    private static void createTag(FileStoreTable table, JsonNode asked) {
        if (asked.has("days")) {
            table.createTag(asked.get("name").asText(), asked.get("snapshot").asLong(), Duration.ofDays(asked.get("days").asLong()));
        } else {
            table.createTag(asked.get("name").asText(), asked.get("snapshot").asLong());
        }
    }

    /** Paths of the files that Java takes for orphans, of any age; deleted unless dry. */
    private static String orphans(FileStoreTable table, JsonNode asked) throws Exception {
        long tomorrow = System.currentTimeMillis() + 86_400_000L;
        List<String> lines = new ArrayList<>();
        for (Path path : new LocalOrphanFilesClean(table, tomorrow, asked.path("dry").asBoolean(true)).clean().getDeletedFilesPath()) {
            lines.add(path.toUri().getPath());
        }
        return String.join("\n", lines);
    }

    /** What a stream reads that starts at a snapshot, or at the long-lived changelog of one that expired. */
    private static String changes(FileStoreTable table, long from) throws Exception {
        Map<String, String> options = new TreeMap<>();
        options.put("scan.mode", "from-snapshot");
        options.put("scan.snapshot-id", Long.toString(from));
        FileStoreTable following = table.copy(options);
        ReadBuilder builder = following.newReadBuilder();
        StreamTableScan scan = builder.newStreamScan();
        List<String> lines = new ArrayList<>();
        long latest = table.snapshotManager().latestSnapshotId();
        for (long plan = from; plan <= latest + 1; plan++) {
            for (Split split : scan.plan().splits()) {
                try (RecordReaderIterator<InternalRow> rows =
                        new RecordReaderIterator<>(builder.newRead().createReader(split))) {
                    while (rows.hasNext()) {
                        InternalRow row = rows.next();
                        Map<String, Object> out = Rendering.row(row, following.rowType());
                        out.put("_ROW_KIND", row.getRowKind().shortString());
                        lines.add(Rendering.write(out));
                    }
                }
            }
        }
        return String.join("\n", lines);
    }

    /**
     * What a stream with these options reads in so many plans: a line for each that had something, with the snapshot
     * that it would read next. With a consumer id, that is recorded after the last one.
     */
    private static String follow(FileStoreTable table, JsonNode asked) throws Exception {
        Map<String, String> options = new TreeMap<>();
        asked.get("options").fields().forEachRemaining(option -> options.put(option.getKey(), option.getValue().asText()));
        FileStoreTable following = table.copy(options);
        ReadBuilder builder = following.newReadBuilder();
        StreamTableScan scan = builder.newStreamScan();
        List<String> lines = new ArrayList<>();
        for (int plan = 0; plan < asked.get("plans").asInt(); plan++) {
            List<Split> splits;
            try {
                splits = scan.plan().splits();
            } catch (EndOfScanException end) {
                break;
            }
            List<Map<String, Object>> rows = new ArrayList<>();
            for (Split split : splits) {
                try (RecordReaderIterator<InternalRow> read =
                        new RecordReaderIterator<>(builder.newRead().createReader(split))) {
                    while (read.hasNext()) {
                        InternalRow row = read.next();
                        Map<String, Object> out = Rendering.row(row, following.rowType());
                        out.put("_row_kind", row.getRowKind().shortString());
                        rows.add(out);
                    }
                }
            }
            if (!rows.isEmpty()) {
                Map<String, Object> line = new TreeMap<>();
                line.put("next", scan.checkpoint());
                line.put("rows", rows);
                lines.add(Rendering.write(line));
            }
        }
        if (asked.path("record").asBoolean(false)) {
            scan.notifyCheckpointComplete(scan.checkpoint());
        }
        return String.join("\n", lines);
    }

    /** All that keeps states, as Java sees it. */
    private static String names(FileStoreTable table) throws Exception {
        Map<String, Object> out = new TreeMap<>();
        List<Long> snapshots = new ArrayList<>();
        for (Iterator<org.apache.paimon.Snapshot> it = table.snapshotManager().snapshots(); it.hasNext(); ) {
            snapshots.add(it.next().id());
        }
        Map<String, Long> tags = new TreeMap<>();
        table.tagManager().tags().forEach((snapshot, found) -> found.forEach(name -> tags.put(name, snapshot.id())));
        List<Long> changelogs = new ArrayList<>();
        table.changelogManager().changelogs().forEachRemaining(changelog -> changelogs.add(changelog.id()));
        out.put("snapshots", snapshots);
        out.put("earliest", table.snapshotManager().earliestSnapshotId());
        out.put("latest", table.snapshotManager().latestSnapshotId());
        out.put("tags", tags);
        out.put("branches", table.branchManager().branches());
        out.put("consumers", new TreeMap<>(table.consumerManager().consumers()));
        out.put("changelogs", changelogs);
        return Rendering.write(out);
    }

    private static FileStoreTable table(String directory, JsonNode asked) {
        FileStoreTable table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(directory));
        return asked.has("branch") ? table.switchToBranch(asked.get("branch").asText()) : table;
    }
}
