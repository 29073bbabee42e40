"""Modules that a process loads before its first rows: only the libraries that it needs, because each delays the start.

The test measures no time: a module that is not loaded takes none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import paimon

HEAVY = {"pandas", "polars", "duckdb", "pyorc", "sqlglot", "pyspark", "datasketches", "sqlalchemy", "obstore", "rich",
         "matplotlib", "prompt_toolkit", "hypothesis", "requests",
         "pyarrow.orc", "pyarrow.dataset", "pyarrow.pandas_compat"}  # fmt: skip
"""Libraries and modules that no stage needs; all of them are installed where the tests run."""
READERS = {"fastavro", "pyarrow.parquet"}
"""What only reading needs."""

EFFECTS = {"paimon.adapters.process_effects"}
"""What `import paimon` itself loads: the settings of the process."""

CONNECT = "import paimon; catalog = paimon.connect({warehouse!r})"
OPEN = "table = catalog.table({name!r})"
OPEN_PATH = "import paimon; table = paimon.open_table({warehouse!r} + '/d.db/' + {name!r}[2:])"
READ = "assert table.scan().to_arrow().num_rows == 2"
READ_COLUMNS = (
    "from paimon.adapters.formats import on_demand, records; "
    "on_demand._record_io = lambda: records.AvroRecordIO(few_bytes=-1)"
)
"""From then on, small manifests are decoded as columns, as large ones are."""
READ_STREAM = "assert sum(batch.num_rows for batch in table.scan().to_batches()) == 2"
FILTER = "assert table.scan(where=paimon.col('id') == 1).to_arrow().num_rows == 1"
FILTER_TEXT = "assert table.scan(where='id = 1').to_arrow().num_rows == 1"

TABLES = ("d.appended", "d.keyed")
COPY = "assert catalog.table({target!r}).write(table.scan().to_arrow()).rows == 2"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A warehouse with an append table and a primary-key table of two runs that overlap, two rows each, and copies."""
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    catalog.create_database("d")
    catalog.create_table("d.appended_copy", "id BIGINT, name STRING")
    appended = catalog.create_table("d.appended", "id BIGINT, name STRING")
    appended.write([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    columns = "id BIGINT NOT NULL, day STRING NOT NULL, name STRING, price DOUBLE"
    options = {"bucket": 2, "bucket-key": "id"}
    for given in ("d.keyed_copy", "d.keyed"):
        keyed = catalog.create_table(
            given, columns, primary_keys=["id", "day"], partition_keys=["day"], options=options
        )
    for name in ("a", "b"):
        keyed.write([{"id": i, "day": "x", "name": name, "price": i / 2} for i in (1, 2)])
    return catalog.warehouse


def find_loaded_modules(*statements: str, **names: str) -> set[str]:
    """The modules of a new process that ran these statements."""
    code = "\n".join([*(s.format(**names) for s in statements), "import sys, json; print(json.dumps([*sys.modules]))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          cwd=Path(paimon.__file__).parents[1])  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_heavy_libraries_are_installed() -> None:
    assert [name for name in HEAVY if find_spec(name) is None] == []  # else the tests below could not fail


LATE = tuple(f"paimon.operations.{part}" for part in ("write", "compact", "expire", "refs", "fsck", "maintenance"))


NOT_READ = (
    *(
        f"paimon.operations.{part}"
        for part in ("write", "commit", "compact", "refs", "fsck", "maintenance", "row_level")
    ),
    *("paimon.operations.lookup_rows", "paimon.operations.data_files.file_indexes", "paimon.system_table"),
    *("paimon.domain.index.", "paimon.domain.assignment.", "paimon.domain.lsm.compaction", "numpy.ma.", "http.client"),
)
"""What reading a table without indexes does not need."""


def test_importing_the_package_loads_no_library() -> None:
    assert not find_loaded_modules("import paimon") & (HEAVY | READERS | {"pyarrow", "numpy"})


def test_picking_a_compaction_loads_no_library() -> None:
    found = find_loaded_modules("import paimon.domain.lsm.compaction.pick")
    assert not found & (HEAVY | READERS | {"pyarrow", "numpy"})
    assert {name for name in found if name.startswith("paimon.adapters.")} == EFFECTS


@pytest.mark.nightly
def test_the_whole_domain_loads_no_adapter() -> None:
    found = find_loaded_modules(
        "import pkgutil, importlib, paimon.domain as d",
        "for module in pkgutil.walk_packages(d.__path__, 'paimon.domain.'): importlib.import_module(module.name)",
    )
    assert not found & ((HEAVY | READERS) - {"sqlglot", "datasketches"})  # what the domain parses and aggregates with
    assert {name for name in found if name.startswith("paimon.adapters.")} == EFFECTS


def test_connecting_loads_neither_readers_nor_tables(warehouse: str) -> None:
    found = find_loaded_modules(CONNECT, warehouse=warehouse)
    assert not found & (HEAVY | READERS)
    assert not {name for name in found if name.startswith(LATE)}


COMMANDS = {"ls": "['ls', {warehouse!r}]", "show": "['show', {warehouse!r} + '/d.db/keyed']",
            "cat": "['cat', {warehouse!r} + '/d.db/keyed', '--where', 'id = 1']"}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_command_line_loads_no_heavy_library(warehouse: str, command: str) -> None:
    found = find_loaded_modules(f"from paimon.cli.main import main; main({command})", warehouse=warehouse)
    assert not found & HEAVY
    assert not {name for name in found if name.startswith(("paimon.operations.write", "paimon.verbs", "paimon.sql."))}


def test_the_list_of_commands_loads_no_library(warehouse: str) -> None:
    found = find_loaded_modules("from paimon.cli.main import list_commands; list_commands().print_help()")
    assert not found & (HEAVY | READERS | {"pyarrow", "numpy"})


def test_reading_loads_no_heavy_library(warehouse: str) -> None:
    """One process opens and reads in each way: what a way loads stays loaded."""
    ways = (CONNECT, OPEN, READ, READ_STREAM, FILTER, FILTER_TEXT, OPEN_PATH, READ)
    statements = [way.format(warehouse=warehouse, name=name) for name in TABLES for way in ways]
    statements.insert(len(ways), READ_COLUMNS)
    found = find_loaded_modules(*statements)
    assert not found & HEAVY
    assert not {name for name in found if name.startswith(NOT_READ)}


def test_writing_arrow_data_loads_no_heavy_library(warehouse: str) -> None:
    ways = [way.format(name=name, target=f"{name}_copy") for name in TABLES for way in (OPEN, COPY)]
    found = find_loaded_modules(CONNECT, *ways, warehouse=warehouse)
    assert "paimon.operations.write.writer" in found
    assert not found & HEAVY


MERGES = {
    "lookup": {"changelog-producer": "lookup"},
    "input": {"changelog-producer": "input"},
    "deletion-vectors": {"deletion-vectors.enabled": "true"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.price.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}


@pytest.mark.parametrize(
    "options",
    [pytest.param(v, id=k, marks=() if k == "lookup" else pytest.mark.nightly) for k, v in MERGES.items()],
)
def test_merging_rows_does_not_load_pandas(tmp_path: Path, options: dict[str, str]) -> None:
    """A process writes and compacts rows of the same keys, finds one among many rows, and reads changes."""
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2", **options}
    statements = (
        "catalog.create_database('d')",
        "columns = 'id BIGINT NOT NULL, name STRING, price DOUBLE, n INT'",
        "table = catalog.create_table('d.t', columns, primary_keys=['id'], options={options})",
        "import numpy, pyarrow; from paimon.domain.types.arrow_arrays import from_numpy, make_array",
        "ids = numpy.arange(3000); names = make_array([str(number) for number in ids], pyarrow.string())",
        "rows = [from_numpy(ids), names, from_numpy(ids / 2), from_numpy(ids.astype('i4'))]",
        "for _ in range(3): table.write(pyarrow.table(rows, ['id', 'name', 'price', 'n']))",
        "table.compact(full=True)",
        "assert table.scan(where='id = 1700').to_arrow().num_rows == 1",
        "table.changes(after=1).to_arrow()",
    )
    found = find_loaded_modules(CONNECT, *statements, warehouse=str(tmp_path), options=repr(options))
    assert "pandas" not in found


def test_tasks_of_spark_that_send_and_write_rows_do_not_load_pandas(warehouse: str) -> None:
    imports = "import numpy; from paimon.spark.tasks import routing, shuffle"
    send = "sent = shuffle.send_rows(table.scan().to_arrow(), numpy.array([0, 1], 'int32'), 0, 0)"
    write = "routing.write_routed_rows(catalog.table('d.keyed_copy').new_batch_write_builder(), None, sent)"
    found = find_loaded_modules(CONNECT, OPEN, imports, send, write, warehouse=warehouse, name="d.keyed")
    assert "pyspark" in found
    assert "pandas" not in found


def test_a_process_of_spark_loads_neither_maintenance_nor_the_parser() -> None:
    found = find_loaded_modules("import paimon.spark.source")
    assert not found & {"sqlglot", "duckdb", "pyarrow.parquet"}
    late = ("paimon.spark.maintenance", "paimon.spark.row_level", "paimon.spark.sql", "paimon.sql.run")
    assert not {module for module in found if module.startswith(late)}
