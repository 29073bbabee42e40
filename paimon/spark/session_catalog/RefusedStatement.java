package paimon.spark;

import org.apache.spark.SparkThrowable;

/** An error of this library. Spark wraps an IllegalArgumentException of ALTER TABLE, unless it is a SparkThrowable. */
public final class RefusedStatement extends IllegalArgumentException implements SparkThrowable {
  public RefusedStatement(String text) {
    super(text);
  }

  public String getCondition() {
    return null;
  }
}
