package paimon.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes predicates as JSON: each part that Python reads of an object of Java would be a message between processes. */
public final class PredicateText implements Function {
  private final ObjectMapper mapper = new ObjectMapper();

  public Object apply(Object predicates) {
    List written = new ArrayList();
    Object[] all = predicates instanceof Object[] ? (Object[]) predicates : new Object[] {predicates};
    for (int i = 0; i < all.length; i++) {
      Map one = describe((Expression) all[i]);
      one.put("text", all[i].toString());
      written.add(one);
    }
    try {
      return mapper.writeValueAsString(written);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
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
