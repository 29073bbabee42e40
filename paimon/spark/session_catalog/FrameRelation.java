package paimon.spark;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;

/** The rows of a data frame as a relation of Spark, which is an abstract class, so that no proxy can be one. */
public final class FrameRelation extends BaseRelation implements TableScan {
  private final Dataset frame;
  private final StructType schema;
  private final String description;
  private final Number bytes;
  private final String readMark;

  public FrameRelation(Object frame, StructType schema, String description, Number bytes, String readMark) {
    this.frame = (Dataset) frame;
    this.schema = schema;
    this.description = description;
    this.bytes = bytes;
    this.readMark = readMark;
  }

  public SQLContext sqlContext() {
    return (SQLContext) frame.sqlContext();
  }

  public StructType schema() {
    return schema;
  }

  public boolean needConversion() {
    return false;
  }

  public RDD buildScan() {
    return (RDD) (Object) frame.queryExecution().toRdd();
  }

  /** Returns the estimated size, by which Spark decides which side of a join is sent to all tasks. */
  public long sizeInBytes() {
    return bytes == null ? super.sizeInBytes() : bytes.longValue();
  }

  /** Returns what is read of the newest snapshot of a table; null if that is not known or was chosen. */
  public String readMark() {
    return readMark;
  }

  public String toString() {
    return description;
  }
}
