"""Nothing from storage or from data becomes code or an object: no module unpickles or evaluates data."""

from __future__ import annotations

import ast
import io
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paimon
from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.settings import read_config
from paimon.domain.types.ddl import parse_columns
from paimon.ports.formats import ReadRequest

ROOT = Path(paimon.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
LOADERS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "yaml", "jsonpickle"}
CALLS = {"eval", "exec", "compile", "__import__", "literal_eval", "read_pickle", "loads_pickle"}
TASKS_OF_OUR_OWN = {"adapters/executors/spark.py"}
"""Unpickles what this very job's driver pickled."""
YAML_READERS = {"adapters/settings.py"}
"""Reads a YAML file that a person names."""


def find_loaders(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {a.name.partition(".")[0] for a in node.names} & LOADERS
        elif isinstance(node, ast.ImportFrom):
            names |= ({(node.module or "").partition(".")[0]} | {a.name for a in node.names}) & LOADERS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names |= {node.func.id} & CALLS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names |= {node.func.attr} & {"read_pickle", "literal_eval", "allow_pickle"}
    return names


def test_no_module_unpickles_or_evaluates() -> None:
    assert len(MODULES) > 400
    bad = {str(p.relative_to(ROOT)): names for p in MODULES if (names := find_loaders(p))}
    assert set(bad) == TASKS_OF_OUR_OWN | YAML_READERS


def test_a_yaml_file_makes_only_plain_values(tmp_path: Path) -> None:
    assert all(find_loaders(ROOT / path) == {"yaml"} for path in YAML_READERS)
    trap = tmp_path / "paimon.yaml"
    trap.write_text(f"warehouse: !!python/object/apply:pathlib.Path.touch [!!python/name:pathlib.Path {tmp_path}/x]\n")
    with pytest.raises(paimon.InvalidRequest, match="not a YAML mapping of catalog options"):
        read_config(str(trap))
    assert list(tmp_path.iterdir()) == [trap]


class Trap:
    """Record that it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("a pickle was loaded",)


def test_an_extension_type_in_a_file_is_not_loaded() -> None:
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Trap()),
        b"pandas": pickle.dumps(Trap()),
    }
    table = pa.table([pa.array([1, 2])], schema=pa.schema([pa.field("a", pa.int64(), metadata=metadata)], metadata))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    request = ReadRequest("f", parse_columns("a BIGINT"))
    batches = list(ParquetFormat().read(pa.BufferReader(sink.getvalue()), request))
    assert [b.to_pydict() for b in batches] == [{"a": [1, 2]}]
