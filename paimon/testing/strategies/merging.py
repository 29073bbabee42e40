"""Strategies for primary-key tables with options that change merging and compaction.

Invariant: each drawn schema passes `check_schema`, and its merge engine accepts the row kinds that come with it. The
columns are always the same, so that tests can name them: k (the key), p (the partition), s and g (possible sequence
fields), a, b and t (values).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen
from hypothesis import strategies as st

from paimon.domain.merge.merge_engines import MERGE_ENGINES, is_newest_winning
from paimon.domain.options.layout_options import FILE_FORMATS
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
_PICK_FUNCTIONS = ("last_value", "last_non_null_value")
_NUMBER_FUNCTIONS = (*_PICK_FUNCTIONS, "sum", "max", "min", "first_value", "first_non_null_value")
_TEXT_FUNCTIONS = (*_PICK_FUNCTIONS, "listagg", "max", "first_value")
_WITHOUT_RETRACT = ("max", "min", "first_value", "first_non_null_value", "listagg")


@frozen
class MergingTable:
    """A table with drawn options, and the row kinds to write into it; a kind that repeats is drawn more often."""

    schema: TableSchema
    kinds: tuple[int, ...]

    @property
    def has_exact_changes(self) -> bool:
        """Whether the changelog leads exactly to the state: a producer computes it, or the newest record wins."""
        options = TableOptions.of(self.schema.options)
        newest_wins = is_newest_winning(options.merge_engine) and not options.sequence_fields
        return newest_wins or options.changelog_producer in ("lookup", "full-compaction")


@st.composite
def merging_tables(draw: st.DrawFn, fixed_options: Mapping[str, str] | None = None) -> MergingTable:
    """Draw tables with every merge engine; `fixed_options` replace drawn options."""
    engine_name = draw(st.sampled_from(list(MERGE_ENGINES)))
    drawn = _OPTIONS_BY_ENGINE.get(engine_name, lambda: st.just(({"merge-engine": engine_name}, ADDS)))
    engine_options, kinds = draw(drawn())
    changelog_options = draw(_changelogs()) if engine_name != "first-row" else {}
    partitioned = draw(st.booleans())
    options = draw(_layouts()) | draw(_compactions()) | engine_options | changelog_options | dict(fixed_options or {})
    if "write-buffer-spillable" in options:
        options.pop("target-file-size", None)
    if TableOptions.of(options).needs_lookup:  # all files of a compaction unit must be rewritten together
        options.pop("compaction.small-file-ratio", None)
        options.pop("target-file-size", None)
    required = ("k", "p") if partitioned else ("k",)  # a retract leaves nulls in the other columns
    fields = fields_of([t.with_nullable(n not in required) for n, t in _COLUMNS.items()], list(_COLUMNS))
    keys = ("p", "k") if partitioned else ("k",)
    return MergingTable(TableSchema(0, fields, len(fields) - 1, keys[:-1], keys, options), kinds)


def _draw_options(draw: st.DrawFn, values_by_option: Mapping[str, tuple[str | None, ...]]) -> Options:
    """Draw one value per option; None omits the option."""
    drawn = {key: draw(st.sampled_from(values)) for key, values in values_by_option.items()}
    return {key: value for key, value in drawn.items() if value is not None}


@st.composite
def _layouts(draw: st.DrawFn) -> Options:
    return _draw_options(
        draw,
        {
            "bucket": ("1", "2", "3"),
            "file.format": ("parquet", *FILE_FORMATS),
            "file.format.per.level": (None, None, "0:avro"),
            "data-file.thin-mode": (None, "true"),
            "target-file-size": (None, None, "1 b"),
            "write-only": ("true", "true", None),
            "write-buffer-size": (None, "1 b", "300 b"),
        },
    )


@st.composite
def _changelogs(draw: st.DrawFn) -> Options:
    features: tuple[Options, ...] = (
        {},
        {},
        {"changelog-producer": "input"},
        {"changelog-producer": "lookup"},
        {"changelog-producer": "full-compaction"},
        {"force-lookup": "true"},
        {"deletion-vectors.enabled": "true"},
        {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
        {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"},
    )
    feature: Options = draw(st.sampled_from(features))
    return feature | _draw_options(draw, {"changelog-producer.row-deduplicate": (None, "true")})


@st.composite
def _compactions(draw: st.DrawFn) -> Options:
    return _draw_options(
        draw,
        {
            "num-sorted-run.compaction-trigger": ("1", "2", "3", "5"),
            "num-levels": ("3", "6"),
            "compaction.max-size-amplification-percent": (None, "0", "9999", "9999", "9999"),
            "compaction.size-ratio": (None, "0", "200"),
            "compaction.force-up-level-0": (None, "true", "true"),
            "compaction.force-rewrite-all-files": (None, None, None, "true"),
            "compaction.small-file-ratio": (None, "0"),
        },
    )


@st.composite
def _deduplicate(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    options = _draw_options(
        draw,
        {
            "sequence.field": (None, None, "s", "g,s"),
            "sequence.field.sort-order": (None, "descending"),
            "ignore-delete": (None, None, None, "true"),
            "ignore-update-before": (None, None, "true"),
        },
    )
    if "sequence.field" not in options:
        # Each file is one flush, so that its sequence numbers show which rows were merged together.
        options |= _draw_options(draw, {"write-buffer-spillable": (None, "false")})
    return options, ALL_KINDS


@st.composite
def _partial_update(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    kind = draw(st.sampled_from(["plain", "ignoring", "removing", "grouped", "aggregated"]))
    options = {"merge-engine": "partial-update"}
    if kind in ("plain", "ignoring", "removing"):
        options |= _draw_options(draw, {"sequence.field": (None, "s")})
    if kind == "ignoring":
        return options | {"ignore-delete": "true"}, ALL_KINDS
    if kind == "removing":
        return options | {"partial-update.remove-record-on-delete": "true"}, ALL_KINDS
    if kind == "plain":
        return options, ADDS
    options |= {"fields.s.sequence-group": "a,t", "fields.g.sequence-group": "b"}
    if kind == "grouped":
        return options | _draw_options(draw, {"partial-update.remove-record-on-sequence-group": (None, "s")}), ALL_KINDS
    functions = {"a": _NUMBER_FUNCTIONS, "b": _NUMBER_FUNCTIONS, "t": _TEXT_FUNCTIONS}
    chosen = {n: draw(st.sampled_from(names)) for n, names in functions.items()}
    return options | _to_function_options(chosen), _find_row_kinds(chosen)


@st.composite
def _aggregation(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    functions = {
        "s": _PICK_FUNCTIONS,
        "g": _NUMBER_FUNCTIONS,
        "a": _NUMBER_FUNCTIONS,
        "b": _NUMBER_FUNCTIONS,
        "t": _TEXT_FUNCTIONS,
    }
    chosen = {n: draw(st.sampled_from(names)) for n, names in functions.items()}
    options = {"merge-engine": "aggregation"}
    if draw(st.booleans()):
        options["sequence.field"] = "s"
        del chosen["s"]
    removing = _draw_options(draw, {"aggregation.remove-record-on-delete": (None, None, "true")})
    return options | removing | _to_function_options(chosen), _find_row_kinds(chosen)


@st.composite
def _first_row(draw: st.DrawFn) -> tuple[Options, tuple[int, ...]]:
    options = _draw_options(draw, {"ignore-delete": (None, "true"), "changelog-producer": (None, "lookup")})
    return {"merge-engine": "first-row", **options}, ALL_KINDS if "ignore-delete" in options else ADDS


_OPTIONS_BY_ENGINE: Mapping[str, Callable[[], st.SearchStrategy[tuple[Options, tuple[int, ...]]]]] = {
    "deduplicate": _deduplicate,
    "first-row": _first_row,
    "aggregation": _aggregation,
    "partial-update": _partial_update,
}
"""Options and row kinds of the engines that have options or take retracts; the others are drawn with adds only."""


def _to_function_options(chosen: Mapping[str, str]) -> Options:
    return {f"fields.{name}.aggregate-function": function for name, function in chosen.items()}


def _find_row_kinds(chosen: Mapping[str, str]) -> tuple[int, ...]:
    return ADDS if set(chosen.values()) & set(_WITHOUT_RETRACT) else ALL_KINDS
