"""A rename by copies while others create, drop and rename, and while its process dies or its storage fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from support.simulated_engines import assemble

from paimon.adapters.catalogs import directories
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.domain.errors import AlreadyExists, NotFound, PaimonError, StorageError
from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.types.ddl import parse_columns
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.table import Table, open_at
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, plan_numbered_faults
from paimon.testing.interleaving import ConstantRandom, Interleaving, SequentialIds, SimulatedClock
from paimon.testing.memory_files import MemoryFiles

DECLARED = TableDeclaration(parse_columns("id INT NOT NULL"), options={"file.format": "avro"})
T, U, S = (f"/lake/d.db/{name}" for name in "tus")
IDS = SequentialIds()
Act = Callable[[FileIO], object]


def engine_of(files: FileIO) -> Engine:
    return assemble(files, SimulatedClock(Interleaving()), IDS, ConstantRandom())


def write_rows(files: FileIO, path: str, *ids: int) -> None:
    engine = engine_of(files)
    create_table(engine, TablePaths(path), DECLARED)
    open_table(files, path).write([{"id": number} for number in ids])
    open_table(files, path).tags.create("first", snapshot=1)
    open_table(files, path).alter("ADD COLUMN v INT")


def open_table(files: FileIO, path: str) -> Table:
    table = open_at(engine_of(files), path, Identifier("d", path[-1]), {})
    assert isinstance(table, Table)
    return table


def rows_of(files: FileIO, path: str) -> list[int]:
    """Return the rows of a whole table, whose tag can be read, too."""
    table = open_table(files, path)
    if table.tags:
        assert table.scan(tag="first").count() > 0
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def rename(source: str, target: str) -> Act:
    return lambda files: FileSystemCatalogStore(files, "/lake").rename_table("d", source[-1], "d", target[-1])


def drop(path: str) -> Act:
    return lambda files: FileSystemCatalogStore(files, "/lake").drop_table("d", path[-1])


def create(path: str) -> Act:
    return lambda files: create_table(engine_of(files), TablePaths(path), DECLARED)


def fails(act: Act, files: FileIO, *kinds: type[PaimonError]) -> bool:
    try:
        act(files)
    except kinds:
        return True
    return False


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    """The files of the tables t with the rows 1 and 2, and s with the row 7."""
    files = MemoryFiles()
    write_rows(files, T, 1, 2)
    write_rows(files, S, 7)
    return files.contents


def copy_of(contents: dict[str, bytes]) -> MemoryFiles:
    files = MemoryFiles()
    files.contents.update(contents)
    return files


def run_at(files: MemoryFiles, number: int, act: Callable[[], object]) -> tuple[FaultyFiles, list[str]]:
    """Return the storage of a process before whose n-th operation another process acts; and its operations."""
    seen: list[str] = []

    def count(operation: str, path: str) -> None:
        if len(seen) == number:
            act()
        seen.append(f"{operation} {path}")

    return FaultyFiles(files, count), seen


def count_operations(contents: dict[str, bytes], act: Act) -> int:
    files, seen = run_at(copy_of(contents), -1, lambda: None)
    act(files)
    return len(seen)


def check_one_wins(contents: dict[str, bytes], slow: Act, quick: Act, rows: tuple[list[int], list[int]]) -> None:
    """Run `quick` before each operation of `slow`: one is refused, and u has the rows of the other."""
    for number in range(count_operations(contents, slow)):
        files, lost = copy_of(contents), list[bool]()

        def act(files: MemoryFiles = files, lost: list[bool] = lost) -> None:
            lost.append(fails(quick, files, AlreadyExists))

        slow_files, _ = run_at(files, number, act)
        assert [fails(slow, slow_files, AlreadyExists), *lost].count(True) == 1, number
        assert rows_of(files, U) == rows[0 if lost == [True] else 1]
        assert FileSystemCatalogStore(files, "/lake").has_table("d", "t") == (rows_of(files, U) != [1, 2])


def test_one_of_create_and_rename_wins(contents: dict[str, bytes]) -> None:
    check_one_wins(contents, rename(T, U), create(U), ([1, 2], []))
    check_one_wins(contents, create(U), rename(T, U), ([], [1, 2]))


def test_one_of_two_renames_wins(contents: dict[str, bytes]) -> None:
    check_one_wins(contents, rename(T, U), rename(S, U), ([1, 2], [7]))


def test_a_rename_without_a_reservation_is_detected(
    contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories._Copy, "reserve", lambda copy: None)
    monkeypatch.setattr(directories._Copy, "check_reserved", lambda copy: None)
    with pytest.raises((AssertionError, PaimonError)):
        check_one_wins(contents, rename(T, U), create(U), ([1, 2], []))


@pytest.mark.parametrize("fault", [Fault.DIE_BEFORE, Fault.DIE_AFTER, Fault.FAIL_BEFORE, Fault.FAIL_AFTER])
def test_after_a_fault_one_of_the_tables_is_whole_and_a_repeated_rename_ends(
    contents: dict[str, bytes], fault: Fault
) -> None:
    for number in range(count_operations(contents, rename(T, U))):
        files = copy_of(contents)
        with suppress(ProcessDied, StorageError):
            rename(T, U)(FaultyFiles(files, plan_numbered_faults({number: fault})))
        is_renamed = files.contents.get(TablePaths(U).schema(0), b"").startswith(b"{")
        assert rows_of(files, U if is_renamed else T) == [1, 2]
        try:
            rename(T, U)(files)
        except AlreadyExists as error:
            assert is_renamed or "drop the table" in str(error)
            if not is_renamed:
                drop(U)(files)
                rename(T, U)(files)
        except NotFound:
            assert is_renamed
        assert rows_of(files, U) == [1, 2]


def test_a_reserved_name_cannot_be_opened_and_can_be_dropped(contents: dict[str, bytes]) -> None:
    """A drop before the publication refuses the rename. A later one does, too, or drops the renamed table."""
    last = count_operations(contents, rename(T, U))
    is_reserved = 0
    for number in range(last):
        files, dropped = copy_of(contents), list[bytes]()

        def act(files: MemoryFiles = files, dropped: list[bytes] = dropped) -> None:
            nonlocal is_reserved
            if (found := files.contents.get(TablePaths(U).schema(0), b"")).startswith(b"reserved"):
                is_reserved += 1
                with pytest.raises(NotFound, match="db/t' reserved this name"):
                    open_table(files, U)
            if found:
                dropped.append(found)
                drop(U)(files)

        slow_files, _ = run_at(files, number, act)
        is_refused = fails(rename(T, U), slow_files, StorageError)
        if is_refused or not dropped:
            assert rows_of(files, T if is_refused else U) == [1, 2], number
        else:
            assert dropped[0].startswith(b"{"), number
        if is_refused:
            assert not files.list(U)
            assert rows_of(files, S) == [7]
    assert is_reserved > last // 3


def test_a_late_commit_under_the_new_name_refuses_the_rename(contents: dict[str, bytes]) -> None:
    """A writer of a dropped table u that dies after its commit leaves a snapshot, whose files are missing."""
    late = TablePaths(U).snapshot(9)
    last = count_operations(contents, rename(T, U))
    refused = 0
    for number in range(last):
        files = copy_of(contents)
        slow_files, _ = run_at(files, number, lambda files=files: files.replace(late, b"{}"))
        if fails(rename(T, U), slow_files, StorageError, AlreadyExists):
            refused += 1
            assert rows_of(files, T) == [1, 2]
            assert [*files.list(U)] == [files.status(TablePaths(U).snapshots)]
            with pytest.raises(AlreadyExists, match="dropped or renamed table: delete it"):
                rename(T, U)(files)
    assert refused > last // 2


def test_what_remains_of_a_copied_table_takes_no_new_table(contents: dict[str, bytes]) -> None:
    """A process that dies while it deletes the old files leaves a directory that `create_table` refuses by name."""
    files = copy_of(contents)
    operations = count_operations(contents, rename(T, U))
    with pytest.raises(ProcessDied):
        rename(T, U)(FaultyFiles(files, plan_numbered_faults({operations - 2: Fault.DIE_BEFORE})))
    assert rows_of(files, U) == [1, 2]
    with pytest.raises(AlreadyExists, match="belongs to no table"):
        create(T)(files)
