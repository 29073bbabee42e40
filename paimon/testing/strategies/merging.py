"""Strategies for primary-key tables whose options vary what merging and compacting do.

Law: each drawn schema passes `check_schema`; the row kinds that come with it are those that its merge engine takes.
Columns stay the same few, so that rows collide and any driver can name them: k (the key), p (the partition), s and g
(which may order rows), a, b and t (values).
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from hypothesis import strategies as st

from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import IntType, VarCharType
from paimon.testing.strategies.histories import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from paimon.testing.strategies.types import fields_of

Options = dict[str, str]

ALL_KINDS = (INSERT, INSERT, UPDATE_AFTER, DELETE, UPDATE_BEFORE)
ADDS = (INSERT, UPDATE_AFTER)
_COLUMNS = {
    "k": IntType(), "p": VarCharType(), "s": IntType(), "g": IntType(), "a": IntType(),
    "b": IntType(), "t": VarCharType(),
}  # fmt: skip
_PICKING = ("last_value", "last_non_null_value")
_NUMBERS = (*_PICKING, "sum", "max", "min", "first_value", "first_non_null_value")
_TEXTS = (*_PICKING, "listagg", "max", "first_value")
_NEVER_TAKEN_BACK = ("max", "min", "first_value", "first_non_null_value", "listagg")


@frozen
class MergingTable:
    """A table of drawn options, and the row kinds to write into it (with repeats, for those wanted more often)."""

    schema: TableSchema
    kinds: tuple[int, ...]

    @property
    def exact_changes(self) -> bool:
        """Whether changes lead to the state: a producer tells them, or the newest record always wins."""
        options = TableOptions.of(self.schema.options)
        newest_wins = options.merge_engine == "deduplicate" and not options.sequence_fields
        return newest_wins or options.changelog_producer in ("lookup", "full-compaction")


@st.composite
def merging_tables(draw: st.DrawFn, more: Mapping[str, str] | None = None) -> MergingTable:
    """Tables of every merge engine; `more` are options that are set whatever was drawn."""
    engine = draw(st.sampled_from([_deduplicate, _partial_update, _aggregation, _first_row]))
    merging, kinds = draw(engine())
    telling = draw(_changelogs()) if engine is not _first_row else {}
    partitioned = draw(st.booleans())
    options = draw(_layouts()) | draw(_compactions()) | merging | telling | dict(more or {})
    if "write-buffer-spillable" in options:
        options.pop("target-file-size", None)
    if TableOptions.of(options).needs_lookup:  # so that all files of a unit are rewritten together
        options.pop("compaction.small-file-ratio", None)
        options.pop("target-file-size", None)
    required = ("k", "p") if partitioned else ("k",)  # taking back leaves nulls elsewhere
    fields = fields_of([t.with_nullable(n not in required) for n, t in _COLUMNS.items()], list(_COLUMNS))
    keys = ("p", "k") if partitioned else ("k",)
    return MergingTable(TableSchema(0, fields, len(fields) - 1, keys[:-1], keys, options), kinds)


def _chosen(draw: st.DrawFn, given: Mapping[str, tuple[str | None, ...]]) -> Options:
    """One value an option; None leaves the option out."""
    drawn = {key: draw(st.sampled_from(values)) for key, values in given.items()}
    return {key: value for key, value in drawn.items() if value is not None}


@st.composite
def _layouts(draw: st.DrawFn) -> Options:
    return _chosen(draw, {
        "bucket": ("1", "2", "3"),
        "file.format": ("parquet", "parquet", "orc", "avro"),
        "file.format.per.level": (None, None, "0:avro"),
        "data-file.thin-mode": (None, "true"),
        "target-file-size": (None, None, "1 b"),
        "write-only": ("true", "true", None),
        "write-buffer-size": (None, "1 b", "300 b"),
    })  # fmt: skip


@st.composite
def _changelogs(draw: st.DrawFn) -> Options:
    features: tuple[Options, ...] = (
        {}, {}, {"changelog-producer": "input"}, {"changelog-producer": "lookup"},
        {"changelog-producer": "full-compaction"}, {"force-lookup": "true"}, {"deletion-vectors.enabled": "true"},
        {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
        {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"},
    )  # fmt: skip
    feature: Options = draw(st.sampled_from(features))
    return feature | _chosen(draw, {"changelog-producer.row-deduplicate": (None, "true")})


@st.composite
def _compactions(draw: st.DrawFn) -> Options:
    return _chosen(draw, {
        "num-sorted-run.compaction-trigger": ("1", "2", "3", "5"),
        "num-levels": ("3", "6"),
        "compaction.max-size-amplification-percent": (None, "0", "9999", "9999", "9999"),
        "compaction.size-ratio": (None, "0", "200"),
        "compaction.force-up-level-0": (None, "true", "true"),
        "compaction.force-rewrite-all-files": (None, None, None, "true"),
        "compaction.small-file-ratio": (None, "0"),
    })  # fmt: skip


@st.composite
def _deduplicate(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    options = _chosen(draw, {
        "sequence.field": (None, None, "s", "g,s"), "sequence.field.sort-order": (None, "descending"),
        "ignore-delete": (None, None, None, "true"), "ignore-update-before": (None, None, "true"),
    })  # fmt: skip
    if "sequence.field" not in options:
        # Files of one flush each, so that they tell which rows were merged together.
        options |= _chosen(draw, {"write-buffer-spillable": (None, "false")})
    return options, ALL_KINDS


@st.composite
def _partial_update(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    kind = draw(st.sampled_from(["plain", "ignoring", "removing", "grouped", "aggregated"]))
    options = {"merge-engine": "partial-update"}
    if kind in ("plain", "ignoring", "removing"):
        options |= _chosen(draw, {"sequence.field": (None, "s")})
    if kind == "ignoring":
        return options | {"ignore-delete": "true"}, ALL_KINDS
    if kind == "removing":
        return options | {"partial-update.remove-record-on-delete": "true"}, ALL_KINDS
    if kind == "plain":
        return options, ADDS
    options |= {"fields.s.sequence-group": "a,t", "fields.g.sequence-group": "b"}
    if kind == "grouped":
        return options | _chosen(draw, {"partial-update.remove-record-on-sequence-group": (None, "s")}), ALL_KINDS
    functions = {"a": _NUMBERS, "b": _NUMBERS, "t": _TEXTS}
    chosen = {n: draw(st.sampled_from(names)) for n, names in functions.items()}
    return options | _functions(chosen), _kinds_of(chosen)


@st.composite
def _aggregation(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    functions = {"s": _PICKING, "g": _NUMBERS, "a": _NUMBERS, "b": _NUMBERS, "t": _TEXTS}
    chosen = {n: draw(st.sampled_from(names)) for n, names in functions.items()}
    options = {"merge-engine": "aggregation"}
    if draw(st.booleans()):
        options["sequence.field"] = "s"
        del chosen["s"]
    removing = _chosen(draw, {"aggregation.remove-record-on-delete": (None, None, "true")})
    return options | removing | _functions(chosen), _kinds_of(chosen)


@st.composite
def _first_row(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    options = _chosen(draw, {"ignore-delete": (None, "true"), "changelog-producer": (None, "lookup")})
    return {"merge-engine": "first-row", **options}, ALL_KINDS if "ignore-delete" in options else ADDS


def _functions(chosen: Mapping[str, str]) -> Options:
    return {f"fields.{name}.aggregate-function": function for name, function in chosen.items()}


def _kinds_of(chosen: Mapping[str, str]) -> tuple[int, ...]:
    return ADDS if set(chosen.values()) & set(_NEVER_TAKEN_BACK) else ALL_KINDS
