"""Keep the tables of the example up to date while orders arrive: python live.py DIRECTORY [ROUNDS].

Run `create_tables.py DIRECTORY` before. Each round adds orders, runs the declarative pipeline, adds the amounts of its
new rows to the days by a stream, merges the states of the orders, and does the maintenance that is due. A round that
was interrupted can be run again: the pipeline and the stream continue where their checkpoints are.
"""

import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import paimon
import paimon.spark

ORDERS_OF_A_ROUND = 4


def create_tables(catalog: paimon.Catalog) -> None:
    """Create the tables that the pipeline does not write: the amounts of the days, and the states of the orders."""
    sums = {"bucket": "1", "merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
    days, states = "day STRING NOT NULL, amount BIGINT", "id BIGINT NOT NULL, day STRING, state STRING"
    catalog.create_table("shop.days", days, primary_keys=["day"], options=sums, exist_ok=True)
    catalog.create_table("shop.states", states, primary_keys=["id"], options={"bucket": "1"}, exist_ok=True)


def add_orders(catalog: paimon.Catalog) -> int:
    """Add the orders of a round, every other of them large, and return the first new id."""
    orders = catalog.table("shop.orders")
    first = orders.scan().count() + 1
    ids = list(range(first, first + ORDERS_OF_A_ROUND))
    days = [("wed", "thu", "fri")[number % 3] for number in ids]
    orders.write({"id": ids, "day": days, "amount": [900 if number % 2 else 9 for number in ids]})
    return first


def run_pipeline(directory: Path) -> None:
    """Run the declarative pipeline: new large orders go to their table."""
    command = [sys.executable, "-m", "paimon.spark.pipelines", "run", "--spec", str(directory / "spark-pipeline.yml")]
    subprocess.run(command, check=True)


def add_amounts(spark: SparkSession, checkpoint: Path) -> None:
    """Add the amounts of new large orders to their days: each micro-batch is one commit, also after a restart."""
    rows = spark.readStream.format("paimon").load("shop.large_orders").select("day", "amount")
    query = paimon.spark.write_stream(rows, "shop.days", str(checkpoint), trigger={"availableNow": True})
    query.awaitTermination()


def merge_states(spark: SparkSession, first_new_id: int) -> None:
    """Insert the new large orders, and update the earlier ones, which are shipped by now."""
    orders = paimon.spark.read(spark, "shop.large_orders", columns=["id", "day"])
    states = orders.selectExpr("id", "day", f"IF(id < {first_new_id}, 'shipped', 'new') AS state")
    merge = paimon.spark.merge(states, "shop.states", on="id").when_not_matched_insert_all()
    merge.when_matched_update({"state": "source.state"}).execute()


def maintain_tables(spark: SparkSession) -> None:
    """Compact the files of the sink, which does not do it itself, and do what is due for all tables."""
    paimon.spark.compact("shop.large_orders", spark=spark)
    paimon.spark.maintain("shop", spark=spark)


def main(directory: Path, rounds: int) -> None:
    """Run the rounds, and print the tables."""
    catalog = paimon.connect(directory / "lake")
    create_tables(catalog)
    spark = paimon.spark.register(paimon.spark.session("local[2]", "live pipeline"), directory / "lake")
    for _ in range(rounds):
        first_new_id = add_orders(catalog)
        run_pipeline(directory)
        add_amounts(spark, directory / "checkpoints" / "days")
        merge_states(spark, first_new_id)
        maintain_tables(spark)
    for name in ("shop.days", "shop.states"):
        print(catalog.table(name).scan().to_pandas().to_string(index=False))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
