"""Declarations of tables of every merge engine: each is created, or refused with a message that has these words.

Java refuses the same, at create or with the first row, except the cases in `DIFFERENT`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

PLAIN = "k INT NOT NULL, a INT, b STRING, c DOUBLE, g INT, h INT"
NESTED = (
    "k INT NOT NULL, n ARRAY<ROW<x INT, y STRING>>, m MAP<STRING, ROW<v INT, t STRING>>, s ARRAY<INT>, p MAP<INT, INT>"
)
OTHERS = "k INT NOT NULL, t BOOLEAN, d DATE, u VARCHAR(5), y BYTES, e DECIMAL(5, 2), z TIMESTAMP(3), r ROW<x INT>"


@frozen
class Rule:
    """A declaration, and the words of its refusal. None if the table is created."""

    options: Mapping[str, str]
    words: str | None = None
    columns: str = PLAIN
    primary_keys: Sequence[str] = ("k",)
    partition_keys: Sequence[str] = ()

    @property
    def row(self) -> dict[str, object]:
        """A row that fits."""
        return {"k": 1} | ({"b": "+I"} if "b STRING" in self.columns else {})


def dedup(words: str | None, **options: str) -> Rule:
    return Rule(_keys(options), words)


def partial(words: str | None, **options: str) -> Rule:
    return Rule({"merge-engine": "partial-update", **_keys(options)}, words)


def first(words: str | None, **options: str) -> Rule:
    return Rule({"merge-engine": "first-row", **_keys(options)}, words)


def agg(words: str | None, columns: str = PLAIN, **options: str) -> Rule:
    return Rule({"merge-engine": "aggregation", **_keys(options)}, words, columns)


def append(words: str | None, **options: str) -> Rule:
    return Rule(_keys({"bucket": "-1", **options}), words, primary_keys=())


def _keys(options: Mapping[str, str]) -> dict[str, str]:
    """Option names: ``__`` is a dot, ``_`` is a dash."""
    return {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}


RULES: dict[str, Rule] = {
    "deduplicate": dedup(None),
    "sequence field": dedup(None, sequence__field="a"),
    "two sequence fields": dedup(None, sequence__field="a,c"),
    "an unknown sequence field": dedup("'x'", sequence__field="x"),
    "a sequence field twice": dedup("twice", sequence__field="a,a"),
    "a sequence field with an aggregate": agg("'a'", sequence__field="a", fields__a__aggregate_function="sum"),
    "a sequence field with the default aggregate": agg(
        None, sequence__field="a", fields__default_aggregate_function="last_value"),
    "a sequence across partitions": Rule({"sequence.field": "a"}, "partition columns", partition_keys=("g",)),
    "an unknown engine": dedup("one of", merge_engine="dedup"),
    "an unknown producer": dedup("one of", changelog_producer="output"),
    "lookup": dedup(None, changelog_producer="lookup"),
    "full-compaction": dedup(None, changelog_producer="full-compaction"),
    "changelogs without keys": append("primary key", changelog_producer="input"),
    "overwrites read as changes, without keys": append("primary key", streaming_read_overwrite="true"),
    "overwrites read as changes, twice": dedup("twice", changelog_producer="lookup", streaming_read_overwrite="true"),
    "sequence numbers without keys": append("primary key", table_read__sequence_number__enabled="true"),
    "a row kind column": dedup(None, rowkind__field="b"),
    "an unknown row kind column": dedup("'x'", rowkind__field="x"),
    "a row kind in a number": dedup("text column", rowkind__field="a"),
    "vectors": dedup(None, deletion_vectors__enabled="true"),
    "vectors and full compactions": dedup(
        "full-compaction", deletion_vectors__enabled="true", changelog_producer="full-compaction"),
    "first-row": first(None),
    "first-row with lookup": first(None, changelog_producer="lookup"),
    "first-row with input": first("'lookup'", changelog_producer="input"),
    "first-row with full compactions": first("'lookup'", changelog_producer="full-compaction"),
    "first-row with a sequence": first("first-row", sequence__field="a"),
    "first-row with vectors": first("first-row", deletion_vectors__enabled="true"),
    "first-row that ignores deletes": first(None, ignore_delete="true"),
    "partial-update": partial(None),
    "a group": partial(None, fields__g__sequence_group="a,b"),
    "a group of two fields": Rule({"merge-engine": "partial-update", "fields.g,h.sequence-group": "a,b"}),
    "a group of an unknown field": partial("'x'", fields__g__sequence_group="a,x"),
    "a group by an unknown field": partial("'x'", fields__x__sequence_group="a"),
    "a column in two groups": partial("already", fields__g__sequence_group="a", fields__h__sequence_group="a"),
    "an aggregate in a group": partial(None, fields__g__sequence_group="a", fields__a__aggregate_function="sum"),
    "an aggregate without a group": partial("sequence group", fields__a__aggregate_function="sum"),
    "the one aggregate without a group": partial(None, fields__a__aggregate_function="last_non_null_value"),
    "an unknown aggregate in a group": partial(
        "not an aggregate function", fields__g__sequence_group="a", fields__a__aggregate_function="average"),
    "a default aggregate without groups": partial("sequence group", fields__default_aggregate_function="sum"),
    "removing on delete": partial(None, partial_update__remove_record_on_delete="true"),
    "removing and ignoring deletes": partial(
        "ignore-delete", partial_update__remove_record_on_delete="true", ignore_delete="true"),
    "removing on delete together with groups": partial(
        "sequence groups", partial_update__remove_record_on_delete="true", fields__g__sequence_group="a"),
    "removing by a group": partial(
        None, partial_update__remove_record_on_sequence_group="g", fields__g__sequence_group="a"),
    "removing by what is no group": partial(
        "not the sequence field", partial_update__remove_record_on_sequence_group="h", fields__g__sequence_group="a"),
    "removing by a group and ignoring": partial(
        "ignore-delete", partial_update__remove_record_on_sequence_group="g", fields__g__sequence_group="a",
        ignore_delete="true"),
    "aggregation": agg(None),
    "sums": agg(None, fields__a__aggregate_function="sum", fields__c__aggregate_function="sum"),
    "a sum of text": agg("STRING", fields__b__aggregate_function="sum"),
    "a default sum over text": agg("STRING", fields__default_aggregate_function="sum"),
    "a sum of dates": agg("DATE", OTHERS, fields__d__aggregate_function="sum"),
    "a product of truth": agg("BOOLEAN", OTHERS, fields__t__aggregate_function="product"),
    "bool_and of a number": agg("INT", fields__a__aggregate_function="bool_and"),
    "bool_or": agg(None, OTHERS, fields__t__aggregate_function="bool_or"),
    "a largest date": agg(None, OTHERS, fields__d__aggregate_function="max", fields__z__aggregate_function="min"),
    "a largest truth": agg("BOOLEAN", OTHERS, fields__t__aggregate_function="max"),
    "a largest row": agg("ROW", OTHERS, fields__r__aggregate_function="max"),
    "a list of texts": agg(None, fields__b__aggregate_function="listagg", fields__b__list_agg_delimiter=";"),
    "a list of short texts": agg("STRING", OTHERS, fields__u__aggregate_function="listagg"),
    "a list of numbers": agg("INT", fields__a__aggregate_function="listagg"),
    "collecting": agg(None, NESTED, fields__s__aggregate_function="collect", fields__s__distinct="true"),
    "collecting numbers": agg("INT", fields__a__aggregate_function="collect"),
    "merging maps": agg(None, NESTED, fields__p__aggregate_function="merge_map"),
    "merging lists": agg("ARRAY", NESTED, fields__s__aggregate_function="merge_map"),
    "maps with times": agg(None, NESTED, fields__m__aggregate_function="merge_map_with_keytime"),
    "maps with a named time": agg(
        None, NESTED, fields__m__aggregate_function="merge_map_with_keytime", fields__m__ts_field="t"),
    "maps with an unknown time": agg(
        "'x'", NESTED, fields__m__aggregate_function="merge_map_with_keytime", fields__m__ts_field="x"),
    "maps with a number as time": agg(
        "text", NESTED, fields__m__aggregate_function="merge_map_with_keytime", fields__m__ts_field="v"),
    "maps without rows": agg("MAP<", NESTED, fields__p__aggregate_function="merge_map_with_keytime"),
    "nested tables": agg(None, NESTED, fields__n__aggregate_function="nested_update", fields__n__nested_key="x"),
    "nested tables without key": agg(None, NESTED, fields__n__aggregate_function="nested_update"),
    "nested tables of an unknown key": agg(
        "'q'", NESTED, fields__n__aggregate_function="nested_update", fields__n__nested_key="q"),
    "nested tables of numbers": agg("ARRAY<ROW", NESTED, fields__s__aggregate_function="nested_update"),
    "nested parts": agg(None, NESTED, fields__n__aggregate_function="nested_partial_update", fields__n__nested_key="x"),
    "nested parts without key": agg("nested-key", NESTED, fields__n__aggregate_function="nested_partial_update"),
    "bitmaps": agg(None, OTHERS, fields__y__aggregate_function="rbm32"),
    "bitmaps in text": agg("STRING", fields__b__aggregate_function="rbm64"),
    "sketches in numbers": agg("INT", fields__a__aggregate_function="hll_sketch"),
    "an unknown function": agg("Did you mean", fields__a__aggregate_function="summ"),
    "an option of an unknown column": agg("'x'", fields__x__aggregate_function="sum"),
    "deletes that remove": agg(
        None, aggregation__remove_record_on_delete="true", fields__a__aggregate_function="sum"),
    "deletes that remove and are ignored": agg(
        "remove-record-on-delete", aggregation__remove_record_on_delete="true", fields__a__aggregate_function="sum",
        fields__a__ignore_retract="true"),
    "an expiry": dedup(None, record_level__expire_time="1 d", record_level__time_field="a"),
    "an expiry without a time": dedup("record-level.time-field", record_level__expire_time="1 d"),
    "an expiry by text": dedup("TIMESTAMP", record_level__expire_time="1 d", record_level__time_field="b"),
    "an expiry by no column": dedup("'x'", record_level__time_field="x"),
}  # fmt: skip

DIFFERENT: dict[str, str] = {
    "maps with a number as time": "Java fails where the first two values meet",
    "a largest truth": "Java fails where the first two values meet",
    "a largest row": "Java fails where the first two values meet",
}
"""What Java makes and lets write, though merging it fails."""
