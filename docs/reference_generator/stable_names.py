"""The stable names of ports, test kit and domain, by their modules; `docs/reference/stability.md` explains them."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module

TESTING = (
    "conformance",
    "contracts",
    "strategies",
    "faulty_files",
    "interleaving",
    "memory_files",
    "memory_key_store",
    "model",
)
DOMAIN: Mapping[str, Sequence[str]] = {
    "commit.message": ("CommitMessage",),
    "lsm.compaction.pick": ("pick",),
    "lsm.compaction.rules": ("CompactionRules", "OffPeak"),
    "lsm.compaction.tree": ("CompactUnit", "LevelRun", "MergeTree"),
    "manifest.entries": ("DataFileMeta", "FileKind", "ManifestEntry"),
    "paths": ("TablePaths",),
    "predicate.expression": ("Predicate",),
    "scan.splits": ("DataSplit",),
    "schema.table_definition": ("TableDefinition",),
    "schema.table_schema": ("TableSchema",),
    "snapshot.snapshot": ("Snapshot",),
    "stats.collect": ("collect_column_stats",),
    "stats.simple_stats": ("ColumnStats",),
    "types.arrow": ("arrow_schema", "arrow_type"),
    "types.data_types": ("DataField", "DataType"),
}


def list_stable_names() -> dict[str, dict[str, object]]:
    """Return the stable names of each module outside `paimon` and `paimon.embed`, with what they name."""
    ports = [found.name for found in pkgutil.iter_modules(import_module("paimon.ports").__path__)]
    modules = [f"paimon.ports.{name}" for name in ports] + [f"paimon.testing.{name}" for name in TESTING]
    names = {module: _list_own(module) for module in modules}
    names |= {f"paimon.domain.{module}": list(found) for module, found in DOMAIN.items()}
    names["paimon.engines"] = ["engine_for"]
    return {module: {name: getattr(import_module(module), name) for name in found} for module, found in names.items()}


def _list_own(module: str) -> list[str]:
    """Return what a module exports: `__all__`, or its own functions and classes."""
    found = import_module(module)
    if hasattr(found, "__all__"):
        return sorted(found.__all__)
    own = {name: value for name, value in vars(found).items() if getattr(value, "__module__", "") == module}
    return sorted(n for n, v in own.items() if n[0] != "_" and (inspect.isclass(v) or inspect.isfunction(v)))
