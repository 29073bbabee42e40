package paimon.spark;

import java.util.function.Function;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Plans the commands on tables that Spark cannot plan with its interfaces; a function in Python returns the plan. */
public final class CommandStrategy extends SparkStrategy {
  private final Function planner;

  public CommandStrategy(Function planner) {
    this.planner = planner;
  }

  public Seq apply(LogicalPlan plan) {
    Object planned = isChange(plan) ? planner.apply(plan) : null;
    Seq none = (Seq) (Object) Nil$.MODULE$;
    return planned == null ? none : (Seq) none.appended((SparkPlan) planned);
  }

  private static boolean isChange(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName();
    return plan instanceof Command
        && (name.equals("UpdateTable")
            || name.equals("MergeIntoTable")
            || name.equals("DeleteFromTable")
            || name.equals("OverwritePartitionsDynamic")
            || name.equals("AnalyzeTable")
            || name.equals("AnalyzeColumn"));
  }
}
