package paimon.spark;

import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.runtime.AbstractFunction1;

/** Gives each new session to a function in Python, before the first statement of the session is analyzed. */
public final class SessionRule extends AbstractFunction1 {
  private final Consumer consumer;

  public SessionRule(Consumer consumer) {
    this.consumer = consumer;
  }

  public Object apply(Object session) {
    return new FirstStatement(consumer, session);
  }

  /** A rule that changes no plan. */
  public static final class FirstStatement extends Rule {
    private final Consumer consumer;
    private Object session;

    public FirstStatement(Consumer consumer, Object session) {
      this.consumer = consumer;
      this.session = session;
    }

    public synchronized TreeNode apply(TreeNode plan) {
      if (session != null) {
        Object found = session;
        session = null;
        consumer.accept(found);
      }
      return plan;
    }
  }
}
