package paimon.spark;

import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Plans the commands on tables that Spark cannot plan with its interfaces; a function in Python returns the plan. */
public final class CommandStrategy extends SparkStrategy {
  private final Function planner;

  public CommandStrategy(Function planner) {
    this.planner = planner;
  }

  public Function planner() {
    return planner;
  }

  public Seq apply(LogicalPlan plan) {
    if (plan.isStreaming()) {
      checkStream(plan);
    }
    Object planned = isChange(plan) ? planner.apply(plan) : null;
    if (planned != null && plan instanceof WriteToDataSourceV2) {
      planned = new FrameExec((Consumer) planned, planLater(((WriteToDataSourceV2) plan).query()));
    }
    return planned == null ? none() : (Seq) none().appended((SparkPlan) planned);
  }

  private void checkStream(LogicalPlan plan) {
    Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      LogicalPlan leaf = (LogicalPlan) leaves.next();
      Iterator attributes = leaf.output().iterator();
      while (attributes.hasNext()) {
        if (((Attribute) attributes.next()).metadata().contains("__metadata_col")) {
          planner.apply(leaf);
        }
      }
    }
  }

  private static Seq none() {
    return (Seq) (Object) Nil$.MODULE$;
  }

  private static boolean isChange(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName();
    return name.equals("UpdateTable")
        || name.equals("MergeIntoTable")
        || name.equals("DeleteFromTable")
        || name.equals("OverwritePartitionsDynamic")
        || name.equals("AnalyzeTable")
        || name.equals("AnalyzeColumn")
        || name.equals("WriteToDataSourceV2");
  }

  /** Gives the rows of a physical plan as a data frame to a function in Python. */
  public static final class FrameExec extends V2CommandExec {
    private final Consumer consumer;
    private final SparkPlan child;

    public FrameExec(Consumer consumer, SparkPlan child) {
      this.consumer = consumer;
      this.child = child;
    }

    public Seq run() {
      consumer.accept(((SparkSession) session()).internalCreateDataFrame((RDD) child.execute(), child.schema(), false));
      return none();
    }

    public Seq output() {
      return none();
    }

    public Seq children() {
      return (Seq) none().appended(child);
    }

    public TreeNode withNewChildrenInternal(IndexedSeq children) {
      return new FrameExec(consumer, (SparkPlan) children.apply(0));
    }

    public int productArity() {
      return 2;
    }

    public Object productElement(int number) {
      return number == 0 ? (Object) consumer : child;
    }

    public boolean canEqual(Object other) {
      return other instanceof FrameExec;
    }
  }
}
