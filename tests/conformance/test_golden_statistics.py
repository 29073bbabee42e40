"""Statistics computed from data files equal those in the manifest entries of Java, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.case_lists import mark_nightly
from support.golden_tables import DAILY_TABLES, golden_directory

from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_schema import TableSchema, schema_from_json
from paimon.domain.stats.collect import StatsRules, collect_column_stats, to_key_stats, to_value_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField

HOME = golden_directory()
CASES = sorted(p.parents[1].name for p in HOME.glob("*/expected/meta.jsonl"))
SPECIAL = ("blob", "data_evolution", "postpone", "variant_shredded", "row_tracking", "dv_containers", "large")


def parquet_entries(case: str) -> list[dict[str, Any]]:
    lines = (HOME / case / "expected" / "meta.jsonl").read_text("utf8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [e for e in entries if e["entry"] == "data" and e["fileName"].endswith(".parquet") and not e["writeCols"]]


RECORDED = [case for case in CASES if not case.startswith(SPECIAL) and parquet_entries(case)]


def stats_of(column: DataField, table: pa.Table) -> ColumnStats:
    nano = isinstance(column.type, dt.TimestampType | dt.LocalZonedTimestampType) and column.type.precision > 6
    if isinstance(column.type, (*dt.NESTED_TYPES, dt.VariantType)):
        return ColumnStats()
    array = table[column.name].cast(arrow_type(column.type), safe=False)
    # INT96 has no order that Parquet knows.
    return ColumnStats(null_count=array.null_count) if nano else collect_column_stats(array, column.type)


def schema_of(case: str, number: int) -> TableSchema:
    path = HOME / case / "table" / "schema" / f"schema-{number}"
    return schema_from_json(path.read_bytes(), str(path))


def file_of(case: str, name: str) -> Path:
    return next((HOME / case / "table").rglob(name))


@pytest.mark.parametrize("case", mark_nightly(RECORDED, always=DAILY_TABLES))
def test_value_and_key_statistics_equal_javas(case: str) -> None:
    for entry in parquet_entries(case)[:6]:
        schema = schema_of(case, entry["schemaId"])
        options = TableOptions.of(schema.options)
        rules = StatsRules.of(options, entry["level"], "parquet")
        table = pq.read_table(file_of(case, entry["fileName"]), partitioning=None)
        stats = [stats_of(column, table) for column in schema.fields]
        keys = frozenset(schema.trimmed_primary_keys) if schema.primary_keys else frozenset()
        thin = keys if options.data_file_thin_mode else frozenset[str]()
        found, names = to_value_stats(schema.fields, stats, rules, thin)
        assert (None if names is None else list(names)) == entry["valueStatsCols"]
        assert list(found.null_counts) == entry["valueStatsNullCounts"]
        assert zeros_alike(found.min_values.hex()) == zeros_alike(entry["valueStatsMinHex"])
        assert zeros_alike(found.max_values.hex()) == zeros_alike(entry["valueStatsMaxHex"])
        if keys:
            own = [stats_of(column, table) for column in schema.key_fields]
            stored = to_key_stats(schema.key_fields, own, rules)
            assert stored.min_values.hex() == entry["keyStatsMinHex"]
            assert stored.max_values.hex() == entry["keyStatsMaxHex"]
            assert list(stored.null_counts) == entry["keyStatsNullCounts"]


def zeros_alike(text: str) -> str:
    # Parquet writes a minimum of zero as -0.0 and a maximum as 0.0; they are equal as bounds.
    return text.replace("0000000000000080", "0" * 16)
