package interop;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Blob;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/** Internal values to and from the JSON that the tests on the Python side use as well. */
final class Rendering {
    static final ObjectMapper JSON = new ObjectMapper();

    private Rendering() {}

    static Map<String, Object> row(InternalRow row, RowType type) {
        Map<String, Object> out = new LinkedHashMap<>();
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataField field = type.getFields().get(i);
            Object value = InternalRow.createFieldGetter(field.type(), i).getFieldOrNull(row);
            out.put(field.name(), render(value, field.type()));
        }
        return out;
    }

    private static Object render(Object value, DataType type) {
        if (value == null) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case FLOAT:
                return floating((double) (Float) value);
            case DOUBLE:
                return floating((Double) value);
            case DECIMAL:
                return ((Decimal) value).toBigDecimal().toPlainString();
            case CHAR:
            case VARCHAR:
                return value.toString();
            case BINARY:
            case VARBINARY:
                return hex((byte[]) value);
            case BLOB:
                return hex(((Blob) value).toData());
            case DATE:
                return LocalDate.ofEpochDay((Integer) value).toString();
            case TIME_WITHOUT_TIME_ZONE:
                return time((Integer) value);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return timestamp((Timestamp) value, type);
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return timestamp((Timestamp) value, type) + "Z";
            case ARRAY:
                return elements((InternalArray) value, ((ArrayType) type).getElementType());
            case MAP:
                return pairs((InternalMap) value, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return pairs((InternalMap) value, ((MultisetType) type).getElementType(), DataTypes.INT());
            case ROW:
                return row((InternalRow) value, (RowType) type);
            case VARIANT:
                return ((Variant) value).toJson();
            default:
                return value;
        }
    }

    private static Object floating(double value) {
        return Double.isNaN(value) || Double.isInfinite(value) ? (Object) Double.toString(value) : (Object) value;
    }

    private static String hex(byte[] bytes) {
        StringBuilder out = new StringBuilder();
        for (byte b : bytes) {
            out.append(String.format("%02x", b));
        }
        return out.toString();
    }

    private static String time(int millis) {
        return LocalTime.ofNanoOfDay(millis * 1_000_000L).format(DateTimeFormatter.ofPattern("HH:mm:ss.SSS"));
    }

    private static String timestamp(Timestamp value, DataType type) {
        int precision = DataTypeChecks.getPrecision(type);
        DateTimeFormatterBuilder form = new DateTimeFormatterBuilder().appendPattern("uuuu-MM-dd'T'HH:mm:ss");
        if (precision > 0) {
            form.appendFraction(ChronoField.NANO_OF_SECOND, precision, precision, true);
        }
        return value.toLocalDateTime().format(form.toFormatter());
    }

    private static List<Object> elements(InternalArray array, DataType type) {
        InternalArray.ElementGetter getter = InternalArray.createElementGetter(type);
        List<Object> out = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            out.add(render(getter.getElementOrNull(array, i), type));
        }
        return out;
    }

    private static List<Object> pairs(InternalMap map, DataType keyType, DataType valueType) {
        List<Object> keys = elements(map.keyArray(), keyType);
        List<Object> values = elements(map.valueArray(), valueType);
        List<Object> out = new ArrayList<>();
        for (int i = 0; i < keys.size(); i++) {
            List<Object> pair = new ArrayList<>();
            Collections.addAll(pair, keys.get(i), values.get(i));
            out.add(pair);
        }
        out.sort((a, b) -> write(a).compareTo(write(b)));
        return out;
    }

    static String write(Object value) {
        try {
            return JSON.writeValueAsString(value);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    static JsonNode parse(String text) {
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    static GenericRow parseRow(JsonNode node, RowType type) {
        GenericRow row = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataField field = type.getFields().get(i);
            row.setField(i, parse(node.get(field.name()), field.type()));
        }
        return row;
    }

    private static Object parse(JsonNode node, DataType type) {
        if (node == null || node.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return node.asBoolean();
            case TINYINT:
                return (byte) node.asInt();
            case SMALLINT:
                return (short) node.asInt();
            case INTEGER:
                return node.asInt();
            case BIGINT:
                return node.asLong();
            case FLOAT:
                return (float) floating(node);
            case DOUBLE:
                return floating(node);
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return Decimal.fromBigDecimal(
                        new BigDecimal(node.asText()), decimal.getPrecision(), decimal.getScale());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(node.asText());
            case BINARY:
            case VARBINARY:
                return unhex(node.asText());
            case BLOB:
                return Blob.fromData(unhex(node.asText()));
            case DATE:
                return (int) LocalDate.parse(node.asText()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                return (int) (LocalTime.parse(node.asText()).toNanoOfDay() / 1_000_000);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(node.asText().replace("Z", "")));
            case ARRAY:
                return array(node, ((ArrayType) type).getElementType());
            case MAP:
                return map(node, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return map(node, ((MultisetType) type).getElementType(), DataTypes.INT());
            case ROW:
                return parseRow(node, (RowType) type);
            case VARIANT:
                return GenericVariant.fromJson(node.asText());
            default:
                throw new IllegalArgumentException("no reading of " + type);
        }
    }

    private static double floating(JsonNode node) {
        return node.isTextual() ? Double.parseDouble(node.asText()) : node.asDouble();
    }

    private static byte[] unhex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static GenericArray array(JsonNode node, DataType type) {
        Object[] values = new Object[node.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = parse(node.get(i), type);
        }
        return new GenericArray(values);
    }

    private static GenericMap map(JsonNode node, DataType keyType, DataType valueType) {
        Map<Object, Object> values = new LinkedHashMap<>();
        for (JsonNode pair : node) {
            values.put(parse(pair.get(0), keyType), parse(pair.get(1), valueType));
        }
        return new GenericMap(values);
    }
}
