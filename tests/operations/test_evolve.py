"""Creating tables and changing schemas: each schema id has one winner, under races and faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commit_tables import engine_on

from paimon.domain.errors import AlreadyExists, CorruptTable, InvalidRequest, NotFound, PaimonError, Unsupported
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.changes import AddColumn, RenameColumn, SchemaChange, SetComment, SetOption
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import IntType
from paimon.domain.types.ddl import parse_columns
from paimon.operations.evolve import TableDeclaration, alter_table, create_table
from paimon.operations.metadata.schemas import latest_schema, load_schema, load_schemas, schema_ids
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.testing.faulty_files import Fault, FaultyFiles, plan_numbered_faults
from paimon.testing.interleaving import Interleaving
from paimon.testing.memory_files import MemoryFiles

PATHS = TablePaths("/lake/db.db/t")
COLUMNS = parse_columns("id INT, name STRING")
SURVIVABLE = [Fault.FAIL_BEFORE, Fault.FAIL_AFTER, Fault.REPLY_UNKNOWN, Fault.REPLY_EXISTS]


def _create(engine: Engine) -> TableSchema:
    return create_table(engine, PATHS, TableDeclaration(COLUMNS, ("id",), (), {"bucket": "1"}, "text"))


def _open(engine: Engine) -> TableContext:
    schema = latest_schema(engine, PATHS)
    assert schema is not None
    return TableContext(engine, TableDefinition("db.t", PATHS, schema, TableOptions.of(schema.options)))


def _alter(engine: Engine, *changes: SchemaChange) -> TableSchema:
    return alter_table(_open(engine), changes)


def test_a_created_table_is_read_unchanged() -> None:
    memory = MemoryFiles()
    made = _create(engine_on(memory))
    assert [*memory.contents] == [PATHS.schema(0)]
    assert latest_schema(engine_on(memory), PATHS) == load_schema(engine_on(memory), PATHS, 0) == made
    with pytest.raises(AlreadyExists):
        _create(engine_on(memory))


@pytest.mark.parametrize(
    ("keys", "options", "error"),
    [(("x",), {}, InvalidRequest), (("id",), {"type": "lance-table"}, Unsupported),
     ((), {"no.such": "1"}, InvalidRequest),
     ((), {"target-file-size": "big"}, InvalidRequest)],
)  # fmt: skip
def test_invalid_schemas_are_not_written(
    keys: tuple[str, ...], options: dict[str, str], error: type[PaimonError]
) -> None:
    memory = MemoryFiles()
    with pytest.raises(error):
        create_table(engine_on(memory), PATHS, TableDeclaration(COLUMNS, keys, (), options))
    assert not memory.contents


def test_unknown_options_can_be_allowed() -> None:
    declaration = TableDeclaration(COLUMNS, options={"no.such": "1"})
    made = create_table(engine_on(MemoryFiles()), PATHS, declaration, allow_unknown_options=True)
    assert made.options == {"no.such": "1"}


def test_each_change_is_a_version_and_no_change_is_none() -> None:
    engine = engine_on(MemoryFiles())
    _create(engine)
    assert _alter(engine, AddColumn("a", IntType()), RenameColumn("name", "label")).id == 1
    assert _alter(engine, SetComment("text")).id == 1
    assert schema_ids(engine, PATHS) == (0, 1)
    assert load_schemas(_open(engine), (1, 0, 1))[1].names == ("id", "label", "a")


def test_a_recreated_table_at_a_path_is_detected() -> None:
    """The cache of an engine must not return the schema of a table that was dropped."""
    memory = MemoryFiles()
    engine = engine_on(memory)
    _create(engine)
    assert latest_schema(engine, PATHS) is not None
    memory.delete([PATHS.schema(0)])
    create_table(engine_on(memory), PATHS, TableDeclaration(parse_columns("other INT")))
    assert load_schema(engine, PATHS, 0).names == ("other",)


@pytest.mark.parametrize(
    "name", ["snapshot/snapshot-1", "tag/tag-a", "changelog/changelog-1", "last-commit/commit-0f",
             "consumer/consumer-a", "branch/branch-b/snapshot/snapshot-1", "branch/branch-b/schema/schema-0"],
)  # fmt: skip
def test_a_new_table_takes_over_no_history(name: str) -> None:
    """A drop leaves what other processes write meanwhile, and a new table would take it for its own."""
    memory = MemoryFiles()
    memory.replace(f"{PATHS.root}/{name}", b"{}")
    with pytest.raises(AlreadyExists, match=name):
        _create(engine_on(memory))
    memory.delete([f"{PATHS.root}/{name}"])
    for harmless in ("snapshot/LATEST", "tag/.tag-a.1.tmp", "bucket-0/data-1-0.parquet", "manifest/manifest-1-0"):
        memory.replace(f"{PATHS.root}/{harmless}", b"1")
    _create(engine_on(memory))


def test_broken_and_missing_schemas_are_named() -> None:
    memory = MemoryFiles()
    engine = engine_on(memory)
    _create(engine)
    with pytest.raises(NotFound, match="schema-5"):
        load_schema(engine, PATHS, 5)
    memory.contents[PATHS.schema(3)] = memory.contents[PATHS.schema(0)]
    with pytest.raises(CorruptTable, match="schema-3: contains schema 0"):
        latest_schema(engine, PATHS)
    with pytest.raises(NotFound, match=r"Table ./none. does not exist"):
        alter_table(
            TableContext(
                engine, TableDefinition("t", TablePaths("/none"), load_schema(engine, PATHS, 0), TableOptions.of({}))
            ),
            (),
        )


@given(st.lists(st.integers(0, 3), max_size=30))
def test_racing_changes_all_take_place(order: list[int]) -> None:
    """Any interleaving of four processes that change one table: every change is in the last schema, ids are fresh."""
    memory, interleaving = MemoryFiles(), Interleaving()
    _create(engine_on(memory))

    def pausing(operation: str, path: str) -> None:
        interleaving.pause()

    def actor(name: str) -> Callable[[], object]:
        engine = engine_on(FaultyFiles(memory, pausing))
        return lambda: _alter(engine, AddColumn(name, IntType()), SetOption("x." + name, "1"))

    def choose(names: Sequence[str]) -> str:
        return names[(order.pop() if order else 0) % len(names)]

    interleaving.run({name: actor(name) for name in "abcd"}, choose)
    last = latest_schema(engine_on(memory), PATHS)
    assert last is not None and last.id == 4
    assert sorted(last.names) == ["a", "b", "c", "d", "id", "name"]
    assert sorted(f.id for f in last.fields) == [0, 1, 2, 3, 4, 5] and last.highest_field_id == 5
    assert {k for k in last.options if k.startswith("x.")} == {"x.a", "x.b", "x.c", "x.d"}


@given(st.dictionaries(st.integers(0, 12), st.sampled_from(SURVIVABLE), max_size=3))
def test_under_faults_a_change_is_committed_once_or_refused(faults: dict[int, Fault]) -> None:
    memory = MemoryFiles()
    _create(engine_on(memory))
    try:
        created = _alter(engine_on(FaultyFiles(memory, plan_numbered_faults(faults))), AddColumn("a", IntType()))
    except PaimonError:
        created = None
    last = latest_schema(engine_on(memory), PATHS)
    assert last is not None and last.id <= 1
    if created is not None:
        assert last == created and last.names == ("id", "name", "a")
