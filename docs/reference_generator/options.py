"""The page of the options, from the registry that checks them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from paimon.domain.merge.aggregate.aggregate_functions import AGGREGATE_FUNCTIONS
from paimon.domain.options import known_options as registry
from paimon.domain.options.option import Kind, Option
from reference_generator.markdown import code, page, prose, sentence, table

_INTRODUCTION = """Set the options of a table with `catalog.create_table(…, options={…})` and `table.set_options({…})`,
or for one handle with `table.with_options({…})`. Set the options of a catalog with `paimon.connect(…)`.

An unknown key and a value of the wrong form are refused by name. `create_table(…, allow_unknown_options=True)` accepts
unknown keys."""

_TYPES = {
    Kind.TEXT: "Any text.",
    Kind.BOOL: "`true` or `false`.",
    Kind.INT: "A whole number of 32 bits.",
    Kind.LONG: "A whole number of 64 bits.",
    Kind.DOUBLE: "A number with or without decimals.",
    Kind.MEMORY: "A number with a unit, in powers of 1024: `128 mb`, `1 gb`. Without a unit: bytes.",
    Kind.DURATION: "A number with a unit of time: `10 s`, `7 d`. Without a unit: milliseconds.",
    Kind.CHOICE: "One of the values that the option's row lists.",
    Kind.NAMES: "Names, separated by commas.",
    Kind.LEVELS: "A value for each level: `0:avro,5:parquet`.",
    Kind.STATS_MODE: "`none`, `counts`, `truncate(N)` or `full`.",
    Kind.STATS_MODE_LEVELS: "A statistics mode for each level: `0:none,5:full`.",
}


_COLUMN_OPTIONS = {
    "aggregate-function": "The [aggregate function](#aggregate-functions) of the column.",
    "count-limit": "`nested_update`: the largest number of rows in the array.",
    "default-value": "Reads return this value in place of null.",
    "distinct": "`listagg`, `collect`: keep each element once.",
    "ignore-retract": "-U and -D rows do not change the column.",
    "kind": "Without effect: Flink's generator of test data reads it.",
    "length": "Without effect, as `kind`.",
    "list-agg-delimiter": "`listagg`: the text between two elements; by default a comma.",
    "max": "Without effect, as `kind`.",
    "min": "Without effect, as `kind`.",
    "nested-key": "`nested_update`, `nested_partial_update`: the fields that identify a row of the array.",
    "nested-key-null-strategy": "What happens to rows with a null in `nested-key`: `merge` (default), `ignore` or "
    "`error`.",
    "nested-sequence-field": "The fields that decide which of two rows with the same `nested-key` is newer.",
    "sequence-group": "`partial-update`: the columns that the sequence fields in the key order.",
    "stats-mode": "The statistics of the column in manifests.",
    "ts-field": "`merge_map_with_keytime`: the field with the time of a value; by default the last one.",
}
_AGGREGATE_FUNCTIONS = {
    "bool_and": ("BOOLEAN", "Whether all values are true."),
    "bool_or": ("BOOLEAN", "Whether a value is true."),
    "collect": ("ARRAY", "An array with the elements of all arrays."),
    "count": ("INT, BIGINT", "The number of values that are not null. Java lacks it, so new tables cannot have it."),
    "first_non_null_value": ("any", "The oldest value that is not null."),
    "first_value": ("any", "The oldest value, also null."),
    "hll_sketch": ("VARBINARY", "The union of HLL sketches; needs the extra `sketches`."),
    "last_non_null_value": ("any", "The newest value that is not null."),
    "last_value": ("any", "The newest value, also null."),
    "listagg": ("STRING", "All texts, joined by a delimiter."),
    "max": ("numbers, texts, times", "The largest value."),
    "merge_map": ("MAP", "A map with the entries of all maps. The newest value of a key wins."),
    "merge_map_with_keytime": (
        "MAP",
        "The same, but the value with the newest time wins. A null value removes its key.",
    ),
    "min": ("numbers, texts, times", "The smallest value."),
    "nested_partial_update": ("`ARRAY<ROW>`", "The rows of all arrays by `nested-key`, merged field by field."),
    "nested_update": ("`ARRAY<ROW>`", "The rows of all arrays. With `nested-key`, the newest row of each key."),
    "primary-key": ("any", "The newest value, also that of a -U or -D row: for columns of the key."),
    "product": ("numbers", "The product of all values."),
    "rbm32": ("VARBINARY", "The union of Roaring bitmaps of 32-bit numbers."),
    "rbm64": ("VARBINARY", "The union of Roaring bitmaps of 64-bit numbers."),
    "sum": ("numbers", "The sum of all values."),
    "theta_sketch": ("VARBINARY", "The union of theta sketches; needs the extra `sketches`."),
}
"""The column types and the result of each function, in words."""


_EFFECTS = """The *Effect* of an option is one of these:

| Effect | Meaning |
|---|---|
| implemented | The value changes what the library does. A limit follows, if there is one. |
| refused | A value other than the default is refused with an error that names the option. What to do instead follows. |
| no effect | The option is accepted, and its value changes nothing. The reason follows. |"""


def generate_page() -> str:
    """Return the page."""
    options = sorted(registry.OPTIONS.values(), key=lambda option: option.key)
    return page(
        "Options",
        _INTRODUCTION,
        "## Types of values",
        table(("Type", "Form"), ([prose(kind.value), _TYPES[kind]] for kind in Kind)),
        "In the tables below, *Changeable* says whether the option may change after the first snapshot.\n"
        "A default of – means that there is none, or that the library computes it from other options.",
        _EFFECTS if any(_effect_of(option) for option in options) else "",
        "## Table options",
        _list_options([option for option in options if not option.catalog]),
        "## Catalog options",
        _list_options([option for option in options if option.catalog]),
        "## Options of one column",
        "Write these keys as `fields.<column>.<name>`. `fields.<column>,<column>.sequence-group` takes several "
        "columns.",
        table(
            ("Name", "Type", "Meaning"),
            ([code(n), prose(k.value), _COLUMN_OPTIONS[n]] for n, k in sorted(registry.FIELD_OPTIONS.items())),
        ),
        "## Aggregate functions",
        "The merge engine `aggregation` applies a function to each column; the default is `last_non_null_value`.\n"
        "Nulls are skipped, unless the table says otherwise. *Retracts* says whether the function accepts -U and -D\n"
        "rows. With `ignore-retract`, each function skips them.",
        table(("Function", "Column types", "Result", "Retracts"), map(_describe_function, sorted(AGGREGATE_FUNCTIONS))),
        "## Options of file indexes",
        "Write these keys as `file-index.<type>.<column>.<name>`. The type is one of\n"
        f"{', '.join(map(code, registry.FILE_INDEX_SETTINGS))}.\n`file-index.<type>.columns` lists the columns of that "
        "type.",
        _list_names((n, k) for settings in registry.FILE_INDEX_SETTINGS.values() for n, k in settings.items()),
        "## Other keys",
        table(("Key", "Meaning"), _list_prefixes()),
        *_describe_families(),
    )


def _list_options(options: list[Option]) -> str:
    has_effect = any(_effect_of(option) for option in options)
    is_catalog = all(option.catalog for option in options)
    header = ["Option", "Type", "Default", *([] if is_catalog else ["Changeable"])]
    header += [*(["Effect"] if has_effect else []), "Meaning"]
    rows = []
    for option in options:
        row = [code(option.key), _type_of(option), "–" if option.default is None else code(option.default)]
        row += [] if is_catalog else ["no" if option.immutable else "yes"]
        row += [_effect_of(option)] if has_effect else []
        rows.append([*row, _meaning_of(option)])
    return table(header, rows)


def _type_of(option: Option) -> str:
    return ", ".join(map(code, option.choices)) if option.choices else prose(option.kind.value)


def _meaning_of(option: Option) -> str:
    aliases = f" Older key: {', '.join(map(code, option.aliases))}." if option.aliases else ""
    return sentence(option.doc) + aliases


def _effect_of(option: object) -> str:
    """Return what the registry says about an option's effect: implemented, refused, or accepted without effect.

    The attribute is a text, an enum, or a value with a class and a reason; a registry without it gives no text.
    """
    effect = getattr(option, "effect", None)
    if effect is None:
        return ""
    kind = getattr(effect, "kind", effect)
    reason = next(
        (
            r
            for owner in (effect, option)
            for name in ("reason", "effect_reason")
            if isinstance(r := getattr(owner, name, None), str) and r
        ),
        "",
    )
    text = prose(str(kind.value if isinstance(kind, Enum) else kind))
    return f"{text}: {prose(reason)}" if reason else text


def _list_names(names: Iterable[tuple[str, Kind]]) -> str:
    return table(("Name", "Type"), ([code(name), prose(kind.value)] for name, kind in sorted(names)))


def _describe_function(name: str) -> list[str]:
    types, result = _AGGREGATE_FUNCTIONS[name]
    return [code(name), types, result, "no" if AGGREGATE_FUNCTIONS[name].folding.retract is None else "yes"]


def _describe_families() -> list[str]:
    """Return the options whose keys hold a name and which have an effect of their own, if the registry lists them."""
    families = getattr(registry, "FAMILIES", ())
    rows = [[code(option.key), _effect_of(option), _meaning_of(option)] for option in families]
    return ["These keys are not implemented:", table(("Key", "Effect", "Meaning"), rows)] if rows else []


def _list_prefixes() -> list[list[str]]:
    formats = [[code(f"{prefix}…"), "A setting of the file format's writer."] for prefix in registry.FORMAT_PREFIXES]
    default = [code(f"{registry.TABLE_DEFAULT_PREFIX}<option>"), "A catalog option: a table option for new tables."]
    return [*formats, default]
