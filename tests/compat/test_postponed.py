"""Plans of buckets, and the writers that follow them, are those of pypaimon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import paimon.compat

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("day", pa.string(), nullable=False),
        ("text", pa.string()),
        ("tags", pa.list_(pa.int32())),
    ]
)


@pytest.fixture
def table() -> Iterator[Any]:
    paimon.compat.install()
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": "memory://postponed"})
    catalog.create_database("d", True)
    options = {"bucket": "-2", "postpone.target-size-per-bucket": "100 b"}
    schema = Schema.from_pyarrow_schema(COLUMNS, ["day"], ["id", "day"], options)
    catalog.create_table("d.t", schema, False)
    yield catalog.get_table("d.t")
    catalog.drop_database("d", cascade=True)
    paimon.compat.uninstall()


def rows(*days: str) -> pa.Table:
    return pa.table(
        {"id": range(len(days)), "day": days, "text": ["x" * 20] * len(days), "tags": [[1, 2, 3]] * len(days)},
        schema=COLUMNS,
    )


def write(builder: Any, data: pa.Table) -> list[Any]:
    writer = builder.new_write()
    writer.write_arrow(data)
    messages: list[Any] = writer.prepare_commit()
    builder.new_commit().commit(messages)
    return messages


def test_a_planner_counts_rows_and_bytes_as_java_stores_them(table: Any) -> None:
    from pypaimon.write.postpone_bucket import PostponeBucketPlan, PostponeBucketPlanner

    write(table.new_batch_write_builder(), rows("b", "b", "b"))
    planner = PostponeBucketPlanner(table)
    # 8 bytes for nulls, 8 for each column, 24 for the text, and 24 for the array: 4 + 4 + 3 * 4, padded
    assert planner.input_partition_stats(rows("a", "b", "a")) == {("a",): (2, 176), ("b",): (1, 88)}
    plan = planner.plan({("a",): (2, 176), ("b",): (1, 88)})
    assert plan.as_dict() == {("a",): 2, ("b",): 4}, "postponed rows count"
    assert planner.input_partition_stats(rows("a")) == {}
    again = PostponeBucketPlanner(table).plan({("b",): (1, 88)}, include_postpone_rows=False)
    assert (again.num_buckets(("b",)), again.contains(("a",))) == (1, False)
    with pytest.raises(ValueError, match="Missing bucket plan for partition"):
        again.num_buckets(("a",))
    assert plan.to_arrow(table).to_pydict() == {"day": ["a", "b"], "total_buckets": [2, 4]}
    with pytest.raises(ValueError, match="positive 32-bit"):
        PostponeBucketPlan({("a",): 0}).to_arrow(table)


def test_writers_follow_a_plan(table: Any) -> None:
    from pypaimon.write.postpone_bucket import PostponeBucketPlan, PostponeBucketPlanner

    builder = table.new_postpone_fixed_bucket_write_builder()
    messages = write(builder.with_bucket_plan(PostponeBucketPlan({("a",): 3})), rows("a", "a"))
    assert {message.total_buckets for message in messages} == {3}
    assert PostponeBucketPlanner(table).current_plan().as_dict() == {("a",): 3}
    assert PostponeBucketPlanner(table, {}).current_plan().as_dict() == {}
    overwrite = table.new_postpone_fixed_bucket_write_builder().with_bucket_plan(PostponeBucketPlan({("a",): 2}))
    assert {message.total_buckets for message in write(overwrite.overwrite({"day": "a"}), rows("a"))} == {2}
