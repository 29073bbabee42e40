package interop;

import org.apache.paimon.compact.CompactUnit;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.mergetree.LevelSortedRun;
import org.apache.paimon.mergetree.SortedRun;
import org.apache.paimon.mergetree.compact.CompactStrategy;
import org.apache.paimon.mergetree.compact.EarlyFullCompaction;
import org.apache.paimon.mergetree.compact.ForceUpLevel0Compaction;
import org.apache.paimon.mergetree.compact.OffPeakHours;
import org.apache.paimon.mergetree.compact.UniversalCompaction;
import org.apache.paimon.stats.SimpleStats;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;

/**
 * What Java's strategies pick. A case is a line: levels, amplification, ratio, trigger, force (0 or 1), total, incremental (bytes, -1
 * for none), off-peak hours (from, to), ratio and the hour of the day, then the runs as level:size. An answer is "files level", or "-".
 */
public final class CompactionPicks {

    private CompactionPicks() {}

    public static String pick(String cases) {
        List<String> out = new ArrayList<>();
        for (String line : cases.split("\n")) {
            String[] words = line.split(" ");
            OffPeakHours hours = atThisHour(number(words[7]), number(words[8]), number(words[9]), number(words[10]));
            UniversalCompaction universal =
                    new UniversalCompaction(
                            number(words[1]), number(words[2]), number(words[3]), early(words[5], words[6]), hours);
            CompactStrategy strategy = words[4].equals("1") ? new ForceUpLevel0Compaction(universal, null) : universal;
            List<LevelSortedRun> runs = new ArrayList<>();
            for (int i = 11; i < words.length; i++) {
                String[] run = words[i].split(":");
                runs.add(new LevelSortedRun(number(run[0]), SortedRun.fromSingle(file(number(run[0]), number(run[1])))));
            }
            Optional<CompactUnit> unit = strategy.pick(number(words[0]), runs);
            out.add(unit.map(u -> u.files().size() + " " + u.outputLevel()).orElse("-"));
        }
        return String.join("\n", out);
    }

    /** Hours that have at any time the ratio that the given ones have at that hour. */
    private static OffPeakHours atThisHour(int from, int to, int ratio, int hour) {
        OffPeakHours given = OffPeakHours.create(from, to, ratio);
        return OffPeakHours.create(0, 24, given == null ? 0 : given.currentRatio(hour));
    }

    private static EarlyFullCompaction early(String total, String incremental) {
        return new EarlyFullCompaction(null, bytes(total), bytes(incremental));
    }

    private static Long bytes(String text) {
        return text.equals("-1") ? null : Long.valueOf(text);
    }

    private static int number(String text) {
        return Integer.parseInt(text);
    }

    private static DataFileMeta file(int level, long size) {
        return DataFileMeta.create(
                "f", size, 1, BinaryRow.EMPTY_ROW, BinaryRow.EMPTY_ROW, SimpleStats.EMPTY_STATS, SimpleStats.EMPTY_STATS,
                0, 0, 0, level, 0L, null, FileSource.APPEND, Collections.emptyList(), null, null);
    }
}
