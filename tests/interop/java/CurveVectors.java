package interop;

import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.sort.hilbert.HilbertIndexer;
import org.apache.paimon.sort.zorder.ZIndexer;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.RowType;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * The positions of rows on Java's curves, as JSON lines: types, values as texts (bytes in hexadecimal digits, timestamps in nanoseconds),
 * the bytes of a text in a Z-order, and both positions (a Hilbert position needs two columns).
 */
public final class CurveVectors {

    private static final List<List<Object>> COLUMNS = Arrays.asList(
            column(DataTypes.BOOLEAN(), "true", "false"),
            column(DataTypes.TINYINT(), "0", "1", "-1", "127", "-128"),
            column(DataTypes.SMALLINT(), "0", "7", "-7", "32767", "-32768"),
            column(DataTypes.INT(), "0", "123456", "-123456", "2147483647", "-2147483648"),
            column(DataTypes.BIGINT(), "0", "4611686018427387904", "-1", "9223372036854775807", "-9223372036854775808"),
            column(DataTypes.FLOAT(), "0.0", "-0.0", "1.5", "-1.5", "NaN", "Infinity", "-Infinity", "1.0E-40"),
            column(DataTypes.DOUBLE(), "0.0", "-0.0", "3.14", "-3.14", "NaN", "Infinity", "-Infinity", "4.9E-324"),
            column(DataTypes.DECIMAL(5, 2), "0.00", "1.27", "1.28", "-1.28", "-1.29", "999.99", "-999.99"),
            column(DataTypes.DECIMAL(38, 10), "0.0000000001", "-0.0000000001", "12345678901234567890.5", "-7.9999999999",
                    "9999999999999999999999999999.9999999999"),
            column(DataTypes.CHAR(3), "a  ", "xyz"),
            column(DataTypes.STRING(), "", "a", "seven77", "eight888", "more than eight", "h\u00e9\u00df\u20ac\ud83d\ude00"),
            column(DataTypes.BINARY(2), "00ff", "8001"),
            column(DataTypes.BYTES(), "", "01", "ffffffffffffffffff", "0000000000000001"),
            column(DataTypes.DATE(), "0", "19000", "-1"),
            column(DataTypes.TIME(3), "0", "86399999"),
            column(DataTypes.TIMESTAMP(0), "1000000000", "-1000000000"),
            column(DataTypes.TIMESTAMP(3), "1500000000000000000", "-1000000"),
            column(DataTypes.TIMESTAMP(6), "1500000000123456000", "-1000"),
            column(DataTypes.TIMESTAMP(9), "1500000000123456789", "-1"),
            column(DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(6), "1500000000123456000", "-999000"));

    private CurveVectors() {}

    public static void main(String[] args) {
        System.out.print(lines());
    }

    /** All lines: each value next to each of three partners, other lengths of text, and wide rows. */
    public static String lines() {
        List<String> out = new ArrayList<>();
        for (List<Object> column : COLUMNS) {
            for (Object value : column.subList(1, column.size())) {
                out.add(line(8, Arrays.asList(column.get(0)), Arrays.asList(value)));
                for (String partner : new String[] {null, "5", "1431655765"}) {
                    out.add(line(8, Arrays.asList(column.get(0), DataTypes.INT()), Arrays.asList(value, partner)));
                }
            }
        }
        for (int bytes : new int[] {1, 3, 12}) {
            out.add(line(bytes, Arrays.asList(DataTypes.STRING(), DataTypes.INT()), Arrays.asList("more than eight", "77")));
            out.add(line(bytes, Arrays.asList(DataTypes.INT(), DataTypes.BYTES()), Arrays.asList("77", "0102030405")));
            out.add(line(bytes, Arrays.asList(DataTypes.STRING(), DataTypes.BYTES()), Arrays.asList(null, null)));
        }
        for (int width : new int[] {3, 7, 8, 9, 11}) {
            for (String last : new String[] {"0", "1", "4611686018427387904", "9223372036854775807"}) {
                List<Object> values = new ArrayList<>(Collections.nCopies(width - 1, last.length() > 9 ? last : "0"));
                values.add(last);
                out.add(line(8, Collections.nCopies(width, DataTypes.BIGINT()), values));
            }
        }
        return String.join("\n", out) + "\n";
    }

    private static List<Object> column(DataType type, String... values) {
        List<Object> column = new ArrayList<>(Arrays.asList((Object) type));
        column.addAll(Arrays.asList(values));
        column.add(null);
        return column;
    }

    private static String line(int textBytes, List<?> types, List<?> values) {
        DataType[] kinds = types.toArray(new DataType[0]);
        String[] names = new String[kinds.length];
        List<String> typeTexts = new ArrayList<>();
        List<String> valueTexts = new ArrayList<>();
        GenericRow row = new GenericRow(kinds.length);
        for (int i = 0; i < kinds.length; i++) {
            String text = (String) values.get(i);
            names[i] = "f" + i;
            typeTexts.add("\"" + kinds[i].asSQLString() + "\"");
            valueTexts.add(text == null ? "null" : "\"" + text + "\"");
            row.setField(i, text == null ? null : parse(kinds[i], text));
        }
        RowType rowType = RowType.of(kinds, names);
        ZIndexer zorder = new ZIndexer(rowType, Arrays.asList(names), textBytes);
        zorder.open();
        String hilbert = "null";
        if (kinds.length > 1) {
            HilbertIndexer indexer = new HilbertIndexer(rowType, Arrays.asList(names));
            indexer.open();
            hilbert = "\"" + hex(indexer.index(row)) + "\"";
        }
        return String.format(
                "{\"types\": %s, \"values\": %s, \"text_bytes\": %d, \"zorder\": \"%s\", \"hilbert\": %s}",
                typeTexts, valueTexts, textBytes, hex(zorder.index(row)), hilbert);
    }

    private static Object parse(DataType type, String text) {
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return Boolean.valueOf(text);
            case TINYINT:
                return Byte.valueOf(text);
            case SMALLINT:
                return Short.valueOf(text);
            case INTEGER:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return Integer.valueOf(text);
            case BIGINT:
                return Long.valueOf(text);
            case FLOAT:
                return Float.valueOf(text);
            case DOUBLE:
                return Double.valueOf(text);
            case DECIMAL:
                BigDecimal number = new BigDecimal(text);
                return Decimal.fromBigDecimal(
                        number,
                        ((org.apache.paimon.types.DecimalType) type).getPrecision(),
                        ((org.apache.paimon.types.DecimalType) type).getScale());
            case BINARY:
            case VARBINARY:
                return bytes(text);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                long nanos = Long.parseLong(text);
                return Timestamp.fromEpochMillis(
                        Math.floorDiv(nanos, 1_000_000L), (int) Math.floorMod(nanos, 1_000_000L));
            default:
                return BinaryString.fromBytes(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    private static byte[] bytes(String digits) {
        byte[] out = new byte[digits.length() / 2];
        for (int i = 0; i < out.length; i++) {
            out[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
        }
        return out;
    }

    private static String hex(byte[] bytes) {
        StringBuilder out = new StringBuilder();
        for (byte b : bytes) {
            out.append(String.format("%02x", b));
        }
        return out.toString();
    }
}
