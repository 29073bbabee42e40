"""The features of an implementation, each with a strategy for cases: a small table, and the steps that fill it.

Invariant: a case needs declared capabilities only, and this library does not refuse its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from attrs import evolve, frozen
from hypothesis import strategies as st

from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import (
    NESTED_TYPES,
    ArrayType,
    DataField,
    DataType,
    IntType,
    MapType,
    MultisetType,
    RowType,
    VarCharType,
)
from paimon.domain.types.field_ids import assign_ids
from paimon.testing.conformance.implementation import BUCKET_MODES, Capabilities
from paimon.testing.strategies.histories import DELETE, INSERT, UPDATE_AFTER
from paimon.testing.strategies.tables import Row
from paimon.testing.strategies.types import types_named
from paimon.testing.strategies.values import values_of

FUNCTIONS = ("sum", "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value")
_BUCKETS = {"dynamic": "-1", "postponed": "-2"}


@frozen
class Write:
    """One commit of rows, as internal values in the order of the columns."""

    rows: tuple[Row, ...]


@frozen
class Compact:
    """A full compaction; `by_kit` means that this library does it, whoever writes."""

    by_kit: bool = False


@frozen
class Delete:
    """The deletion of the rows with this value of column k."""

    value: int


@frozen
class AddColumn:
    """The last column is added; before, the table does not have it."""


Step = Write | Compact | Delete | AddColumn


@frozen
class Case:
    """A table at its last schema, the steps, and whether each snapshot is read."""

    schema: TableSchema
    steps: tuple[Step, ...]
    reads_each: bool = False

    @property
    def columns_at_first(self) -> int:
        """The number of columns before the column is added."""
        return len(self.schema.fields) - (AddColumn() in self.steps)


@frozen
class Shape:
    """What the tables of a feature have in common."""

    value_type: str = "INT"
    key_type: str | None = None
    partition_type: str | None = None
    bucket_mode: str = "unaware"
    file_format: str = "parquet"
    options: Mapping[str, str] = {}
    # columns besides p, k and v: s, a sequence, or op, the row kind
    more: tuple[str, ...] = ()
    step: type[Compact] | type[Delete] | type[AddColumn] | None = None
    # whether integers are of all sizes
    wide: bool = False
    # whether this library compacts at the end, without which no row is visible
    compacted: bool = False
    reads_each: bool = False

    @property
    def type_format(self) -> str:
        """The file format that limits the types: files of postponed buckets are Avro until they are compacted."""
        return "avro" if self.bucket_mode == "postponed" else self.file_format


def features_of(can: Capabilities) -> dict[str, st.SearchStrategy[Shape]]:
    """Return the features that an implementation declares by name, each with the shapes of its tables."""
    shapes = dict(_shapes(can))
    return {name: st.just(shape) for name, shape in shapes.items()} | {
        "combined": _combined_shapes(can, list(shapes.values()))
    }


def _shapes(can: Capabilities) -> Iterator[tuple[str, Shape]]:
    modes = [mode for mode in BUCKET_MODES if mode in can.bucket_modes and mode != "unaware"]
    keyed = bool(modes and can.merge_engines)
    base = key_base = Shape("INT" if "INT" in can.types else can.types[0], file_format=can.file_formats[0])
    if keyed:
        key_type = "INT" if "INT" in can.key_types else can.key_types[0]
        options = {} if "deduplicate" in can.merge_engines else {"merge-engine": can.merge_engines[0]}
        key_base = evolve(base, key_type=key_type, bucket_mode=modes[0], options=options)
    if "unaware" not in can.bucket_modes:
        base = key_base
    for name in can.merge_engines if keyed else ():
        yield f"engine:{name}", evolve(key_base, options={} if name == "deduplicate" else {"merge-engine": name})
    yield from _deletion_vector_shapes(can, base, key_base)
    for name in can.bucket_modes:
        is_append = name == "unaware"
        if is_append or keyed:
            yield f"buckets:{name}", evolve(base if is_append else key_base, bucket_mode=name)
    for name in can.file_formats:
        yield f"format:{name}", evolve(key_base, file_format=name, value_type="")
    yield from _change_shapes(can, base, key_base)
    for name in can.types:
        yield f"type:{name}", evolve(base, value_type=name, wide=True)
    for name in can.key_types if keyed else ():
        yield f"key:{name}", evolve(key_base, key_type=name, wide=True)
    for name in can.partition_types if "partitions" in can.features else ():
        yield f"partition:{name}", evolve(base, partition_type=name, wide=True)


def _deletion_vector_shapes(can: Capabilities, base: Shape, key_base: Shape) -> Iterator[tuple[str, Shape]]:
    vectors, write_only = {"deletion-vectors.enabled": "true"}, {"write-only": "true"}
    if "first-row" in can.merge_engines and key_base.key_type:
        first_row = {"merge-engine": "first-row"}
        yield "compacted:first-row", evolve(key_base, options=first_row | write_only, compacted=True)
    if "deletion-vectors" in can.features:
        if key_base.key_type and "deduplicate" in can.merge_engines:
            yield "deletion-vectors:key-table", evolve(key_base, options=vectors)
            yield "compacted:deletion-vectors", evolve(key_base, options=vectors | write_only, compacted=True)
        if "unaware" in can.bucket_modes and "INT" in can.types:
            yield "deletion-vectors:append-table", evolve(base, key_type="INT", options=vectors, step=Delete)


def _change_shapes(can: Capabilities, base: Shape, key_base: Shape) -> Iterator[tuple[str, Shape]]:
    if "unaware" in can.bucket_modes and "INT" in can.types:
        yield "delete:append-table", evolve(base, key_type="INT", step=Delete)
    if "unaware" in can.bucket_modes:
        yield "compacted:append-table", evolve(base, step=Compact)
    if key_base.key_type:
        yield "compacted:key-table", evolve(key_base, step=Compact)
    if "deduplicate" in can.merge_engines and key_base.key_type:
        # a delete finds visible rows only, and those of postponed buckets are visible after a compaction
        if "INT" in can.key_types and key_base.bucket_mode != "postponed":
            yield "delete:key-table", evolve(key_base, key_type="INT", step=Delete)
        if "row-kinds" in can.features:
            yield "row-kinds", evolve(key_base, more=("op",), options={"rowkind.field": "op"})
        if "sequence-field" in can.features:
            yield "sequence-field", evolve(key_base, more=("s",), options={"sequence.field": "s"})
    if "added-columns" in can.features:
        yield "added-columns", evolve(key_base, step=AddColumn)
    if "time-travel" in can.features and key_base.bucket_mode != "postponed":
        yield "time-travel", evolve(key_base, reads_each=True)


@st.composite
def _combined_shapes(draw: st.DrawFn, can: Capabilities, shapes: list[Shape]) -> Shape:
    """Draw a shape with a type, a format, a partition and buckets of other features."""
    shape = draw(st.sampled_from(shapes))
    changes: dict[str, Any] = {"value_type": "" if shape.value_type == "INT" else shape.value_type}
    changes["file_format"] = draw(st.sampled_from(can.file_formats))
    if "partitions" in can.features:
        changes["partition_type"] = draw(st.none() | st.sampled_from(can.partition_types))
    if shape.key_type is not None and shape.bucket_mode == "fixed":
        if shape.step is not Delete:
            changes["key_type"] = draw(st.sampled_from(can.key_types))
        if not shape.options and "dynamic" in can.bucket_modes:
            changes["bucket_mode"] = draw(st.sampled_from(("fixed", "dynamic")))
    return evolve(shape, **changes)


@st.composite
def cases(draw: st.DrawFn, shapes: st.SearchStrategy[Shape], can: Capabilities, min_writes: int = 1) -> Case:
    """Draw tables and the steps that fill them.

    Parameters
    ----------
    draw : callable
        Supplied by Hypothesis; callers omit it.
    shapes : SearchStrategy
        Draws what the table is like.
    can : Capabilities
        What the implementation supports.
    min_writes : int
        The smallest number of writes; 3 is the largest.

    Returns
    -------
    Case
        The table and the steps.
    """
    shape = draw(shapes)
    if not shape.value_type:
        shape = evolve(shape, value_type=draw(st.sampled_from(can.types)))
    schema = _draw_schema(draw, shape, can)
    writes = draw(st.lists(_writes(draw, schema, shape), min_size=min_writes, max_size=3))
    steps: list[Step] = list(writes)
    if shape.step is not None:
        keys = [row[schema.names.index("k")] for row in writes[0].rows] if shape.step is Delete else []
        extra = Delete(draw(st.sampled_from(keys))) if keys else AddColumn() if shape.step is AddColumn else Compact()
        steps.insert(draw(st.integers(1, len(steps))), extra)
    if shape.compacted or shape.bucket_mode == "postponed":
        steps.append(Compact(by_kit=True))
    case = Case(schema, tuple(steps), shape.reads_each)
    return evolve(case, steps=tuple(_cut_rows(case)))


def _cut_rows(case: Case) -> Iterator[Step]:
    """Yield the steps; rows before the last column is added do not have it."""
    width = case.columns_at_first
    for step in case.steps:
        width = len(case.schema.fields) if isinstance(step, AddColumn) else width
        yield Write(tuple(row[:width] for row in step.rows)) if isinstance(step, Write) else step


def _draw_schema(draw: st.DrawFn, shape: Shape, can: Capabilities) -> TableSchema:
    columns: list[tuple[str, DataType]] = []
    is_keyed = shape.key_type is not None and shape.bucket_mode != "unaware"
    if shape.partition_type:
        columns.append(("p", draw(types_named(shape.partition_type, shape.type_format)).with_nullable(False)))
    if shape.key_type:
        columns.append(("k", draw(types_named(shape.key_type, shape.type_format)).with_nullable(not is_keyed)))
    more = {"s": IntType(), "op": VarCharType()}
    columns += [(name, more[name]) for name in shape.more]
    columns.append(("v", draw(types_named(shape.value_type, shape.type_format, can.types))))
    if shape.step is AddColumn:
        columns.append(("n", IntType()))
    partition_keys = ("p",) if shape.partition_type else ()
    fields, highest = assign_ids(DataField(0, name, data_type) for name, data_type in columns)
    options = _draw_options(draw, shape)
    return TableSchema(0, fields, highest, partition_keys, (*partition_keys, "k") if is_keyed else (), options)


def _draw_options(draw: st.DrawFn, shape: Shape) -> dict[str, str]:
    options = dict(shape.options)
    if shape.bucket_mode != "unaware":
        options["bucket"] = _BUCKETS.get(shape.bucket_mode) or draw(st.sampled_from(("1", "3")))
    if shape.file_format != "parquet":
        options["file.format"] = shape.file_format
    if shape.partition_type in ("BINARY", "VARBINARY"):
        options["partition.legacy-name"] = "false"
    if options.get("merge-engine") == "aggregation":
        functions = FUNCTIONS if shape.value_type == "INT" else FUNCTIONS[3:]
        options["fields.v.aggregate-function"] = draw(st.sampled_from(functions))
    return options


def _writes(draw: st.DrawFn, schema: TableSchema, shape: Shape) -> st.SearchStrategy[Write]:
    """Draw writes whose keys and partitions come from small pools, so that rows meet."""
    columns: list[st.SearchStrategy[Any]] = []
    for column in schema.fields:
        if column.name == "op":
            columns.append(st.sampled_from([KIND_TEXTS[kind] for kind in (INSERT, UPDATE_AFTER, DELETE)]))
            continue
        values = values_of(column.type)
        if isinstance(column.type, IntType) and not shape.wide:
            values = st.integers(0, 9) if column.name in "pk" else st.none() | st.integers(0, 9)
        if column.name in "pk":
            pool = values if column.name == "p" else values.filter(lambda value: value is not None)
            values = st.sampled_from(draw(st.lists(pool, min_size=1, max_size=3, unique_by=repr)))
        is_nested = isinstance(column.type, NESTED_TYPES)
        columns.append(values.map(partial(sort_maps, data_type=column.type)) if is_nested else values)
    return st.lists(st.tuples(*columns), min_size=1, max_size=4).map(lambda rows: Write(tuple(rows)))


def sort_maps(value: Any, data_type: DataType) -> Any:
    """Sort the entries of the maps in an internal value; their order has no meaning."""
    match data_type:
        case _ if value is None:
            return None
        case MapType(key=key, value=item):
            return sorted(((sort_maps(k, key), sort_maps(v, item)) for k, v in value), key=repr)
        case MultisetType(element=element):
            return sorted(((sort_maps(k, element), count) for k, count in value), key=repr)
        case ArrayType(element=element):
            return [sort_maps(v, element) for v in value]
        case RowType(fields=fields):
            return tuple(sort_maps(v, f.type) for v, f in zip(value, fields, strict=True))
    return value
