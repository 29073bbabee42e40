"""The golden tables that Java wrote, with the rows that Java reads; unpacked once for all test processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "golden.tar.xz"
_DAILY = """
agg_collect agg_last_value_retract agg_listagg agg_merge_map agg_nested_update agg_roaring agg_sketches agg_sum
append_bucketed_compact append_unaware_parquet blob branch_fast_forward branches bucket_fn_hive bucket_fn_mod_int
changelog_decoupled char_short_orc char_short_parquet cl_full cl_input cl_lookup_agg compress_avro_snappy
compress_orc_lz4 compress_parquet_lz4 compress_per_level consumers cross_partition data_evolution dv_append_bitmap64
dv_pk dyn_bucket evo_cast_parquet evo_nested evo_pk_rename_key expired fallback_branch first_row_lookup fp_edges_pk
idx_bitmap_file idx_bloom_embedded idx_bsi idx_range_bitmap incremental manifest_parquet overwrite_pk part_by_date
part_by_ts part_legacy_name_off pk_clustering pk_dedup_avro pk_dedup_orc pk_dedup_parquet pk_ignore_delete pk_paths
pk_thin_mode postpone_compacted pu_late_aggs pu_remove_on_delete pu_sequence_group record_expire rescale_bucket
rollback rolling_files row_tracking rowkind_field seq_desc seq_two statistics stats_truncate tags types_flat_avro
types_flat_orc types_flat_parquet types_nano_parquet types_nested_avro types_nested_orc types_nested_parquet
types_pk_parquet types_variant_parquet v07_dv v07_dynamic v09_append v09_pk variant_shredded vectors watermark
"""
DAILY_TABLES = frozenset(_DAILY.split())
"""A table of each kind: the cases that run at every level. Those of the other tables run in nightly runs only."""


def golden_directory() -> Path:
    """The directory of the unpacked cases. The first process creates it with an atomic rename."""
    digest = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]
    home = Path(tempfile.gettempdir()) / f"paimon-golden-{os.getuid()}-{digest}"
    if not home.exists():
        fresh = Path(tempfile.mkdtemp(prefix="paimon-golden-new-"))
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(fresh, filter="data")
        try:
            fresh.rename(home)
        except OSError:
            shutil.rmtree(fresh)
    return home


@frozen
class GoldenRead:
    """One read of one case: the request, and the file with Java's result."""

    case: str
    name: str
    kind: str
    arguments: dict[str, Any]
    expected: Path

    @property
    def table(self) -> Path:
        return self.expected.parents[1] / "table"

    def rows(self) -> list[str]:
        """The expected rows as canonical JSON, sorted."""
        return sorted(self.expected.read_text("utf8").splitlines())


def golden_reads(home: Path) -> Iterator[GoldenRead]:
    """All reads of all cases."""
    for case in sorted(p.parent for p in home.glob("*/case.json")):
        asked = {r["name"]: r for r in json.loads((case / "case.json").read_text("utf8")).get("reads", [])}
        for expected in sorted((case / "expected").glob("*.jsonl")):
            read = _read_of(case.name, expected, asked)
            if read is not None:
                yield read


def _read_of(case: str, expected: Path, asked: dict[str, Any]) -> GoldenRead | None:
    stem = expected.stem
    what, _, name = stem.partition("-")
    if stem == "latest":
        return GoldenRead(case, stem, "rows", {}, expected)
    if stem == "changelog":
        return GoldenRead(case, stem, "changes", {}, expected)
    if what == "snapshot":
        return GoldenRead(case, stem, "rows", {"snapshot": int(name)}, expected)
    if what in ("tag", "branch"):
        return GoldenRead(case, stem, "rows", {what: name}, expected)
    if what == "read" and name in asked:
        read = asked[name]
        arguments: dict[str, Any] = {"where": sql(read["where"])} if read.get("where") else {}
        arguments |= {"columns": read["project"]} if read.get("project") else {}
        arguments |= {"options": read["options"]} if read.get("options") else {}
        arguments |= {"branch": read["branch"]} if read.get("branch") else {}
        kind = f"system:{read['system']}" if read.get("system") else "rows"
        return GoldenRead(case, stem, kind, arguments, expected)
    return None


def sql(conditions: list[Any]) -> str:
    """A case's conditions as predicate text."""
    return " AND ".join(_condition(c) for c in conditions)


def _condition(condition: list[Any]) -> str:
    if condition[0] == "or":
        return f"({' OR '.join(_condition(c) for c in condition[1:])})"
    column, operator, *literals = condition
    if operator in ("in", "notIn"):
        return f"{column} {'NOT IN' if operator == 'notIn' else 'IN'} ({', '.join(map(_literal, literals[0]))})"
    if operator == "between":
        low, high = literals[0] if isinstance(literals[0], list) else literals
        return f"{column} BETWEEN {_literal(low)} AND {_literal(high)}"
    if operator == "startsWith":
        return f"{column} LIKE {_literal(literals[0] + '%')}"
    if operator in ("isNull", "isNotNull"):
        return f"{column} IS {'NOT ' if operator == 'isNotNull' else ''}NULL"
    return f"{column} {'<>' if operator == '!=' else operator} {_literal(literals[0])}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else str(value)
