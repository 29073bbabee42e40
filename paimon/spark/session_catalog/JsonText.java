package paimon.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes predicates, columns, names and maps as JSON: each part that Python reads of an object of Java would be a
 * message between processes.
 */
public final class JsonText implements Function {
  private final ObjectMapper mapper = new ObjectMapper();

  public Object apply(Object given) {
    try {
      return mapper.writeValueAsString(convert(given));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private static Object convert(Object given) {
    if (given instanceof Map || given instanceof String[]) {
      return given;
    }
    List written = new ArrayList();
    if (given instanceof Identifier) {
      String[] namespace = ((Identifier) given).namespace();
      for (int i = 0; i < namespace.length; i++) {
        written.add(namespace[i]);
      }
      written.add(((Identifier) given).name());
      return written;
    }
    Object[] all = given instanceof Object[] ? (Object[]) given : new Object[] {given};
    for (int i = 0; i < all.length; i++) {
      written.add(all[i] instanceof Column ? describeColumn((Column) all[i]) : describePredicate(all[i]));
    }
    return written;
  }

  private static Map describeColumn(Column column) {
    Map found = new LinkedHashMap();
    found.put("name", column.name());
    found.put("type", column.dataType().json());
    found.put("nullable", Boolean.valueOf(column.nullable()));
    found.put("comment", column.comment());
    found.put("default", Boolean.valueOf(column.defaultValue() != null));
    boolean isGenerated = column.generationExpression() != null || column.identityColumnSpec() != null;
    found.put("generated", Boolean.valueOf(isGenerated));
    return found;
  }

  private static Map describePredicate(Object predicate) {
    Map found = describe((Expression) predicate);
    found.put("text", predicate.toString());
    return found;
  }

  private static Map describe(Expression node) {
    Map found = new LinkedHashMap();
    if (node instanceof NamedReference) {
      found.put("column", ((NamedReference) node).fieldNames());
    } else if (node instanceof Literal) {
      found.put("type", ((Literal) node).dataType().json());
      found.put("value", toPlain(((Literal) node).value()));
    } else if (node instanceof GeneralScalarExpression) {
      found.put("name", ((GeneralScalarExpression) node).name());
      List children = new ArrayList();
      Expression[] all = node.children();
      for (int i = 0; i < all.length; i++) {
        children.add(describe(all[i]));
      }
      found.put("children", children);
    }
    return found;
  }

  private static Object toPlain(Object value) {
    if (value instanceof byte[]) {
      byte[] bytes = (byte[]) value;
      int[] plain = new int[bytes.length];
      for (int i = 0; i < bytes.length; i++) {
        plain[i] = bytes[i] & 0xff;
      }
      return plain;
    }
    boolean isPlain = value == null || value instanceof Boolean || value instanceof Number && !(value instanceof Decimal);
    return isPlain ? value : value.toString();
  }
}
