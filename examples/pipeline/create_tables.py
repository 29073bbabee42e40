"""Create the tables and the specification of the example pipeline in a directory: python create_tables.py [DIRECTORY].

Then run the pipeline: python -m paimon.spark.pipelines run --spec DIRECTORY/spark-pipeline.yml
"""

import shutil
import sys
from pathlib import Path

import paimon

SPECIFICATION = """\
name: orders
storage: {storage}
libraries:
  - glob:
      include: definitions/**
configuration:
  spark.sql.session.timeZone: UTC
"""


def create_tables(directory: Path) -> None:
    """Create a table of orders with rows, an empty table for the large ones, and the pipeline between them."""
    catalog = paimon.connect(directory / "lake")
    catalog.create_database("shop", exist_ok=True)
    orders = catalog.create_table("shop.orders", "id BIGINT, day STRING, amount BIGINT")
    catalog.create_table("shop.large_orders", "id BIGINT, day STRING, amount BIGINT")
    orders.write({"id": [1, 2, 3], "day": ["mon", "mon", "tue"], "amount": [5, 500, 700]})
    storage = (directory / "checkpoints").resolve().as_uri()  # Spark takes no relative path here
    (directory / "spark-pipeline.yml").write_text(SPECIFICATION.format(storage=storage))


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else here).resolve()
    if directory != here:
        shutil.copytree(here / "definitions", directory / "definitions")
    create_tables(directory)
