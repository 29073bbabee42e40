"""The contract of RowFiles as tests.

An adapter that keeps the contract of `paimon.ports.row_files` passes. Derive a class from `RowFilesContract`, whose
`make_row_files` returns the adapter and two empty local directories, which do not contain each other.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound
from paimon.ports.row_files import FileRows, RowFiles
from paimon.testing.contracts.files import expect_error


class RowFilesContract(ABC):
    """The tests of the port. A subclass implements `make_row_files`."""

    @abstractmethod
    def make_row_files(self) -> tuple[RowFiles, Path, Path]:
        """Return a new adapter, a directory that is a root, and one outside of it."""

    def test_the_extension_or_the_caller_names_the_format(self) -> None:
        """The rows are the same; another extension, and another format, are refused."""
        files, root, _ = self.make_row_files()
        (root / "a.csv").write_text("id\n1\n2\n")
        (root / "a.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
        parquet.write_table(pa.table({"id": [1, 2]}), root / "a.parquet")
        for name in ("a.csv", "a.jsonl", "a.parquet"):
            assert _ids(files.open([str(root / name)])) == [1, 2]
        (root / "a.csv").rename(root / "a.data")
        assert _ids(files.open([root / "a.data"], "csv")) == [1, 2]
        expect_error(InvalidRequest, lambda: files.open([root / "a.data"]))
        expect_error(InvalidRequest, lambda: files.open([root / "a.data"], "xls"))
        expect_error(CorruptTable, lambda: _ids(files.open([root / "a.data"], "parquet")))

    def test_patterns_match_files_in_the_order_of_their_names(self) -> None:
        """`**` matches directories; a pattern that matches nothing is an error."""
        files, root, _ = self.make_row_files()
        (root / "deep" / "er").mkdir(parents=True)
        for number, name in enumerate(("b.csv", "a.csv", "deep/er/c.csv")):
            (root / name).write_text(f"id\n{number}\n")
        assert _ids(files.open([str(root / "*.csv")])) == [1, 0]
        assert _ids(files.open([str(root / "[a]?csv")])) == [1]
        assert _ids(files.open([str(root / "**" / "*.csv")])) == [1, 0, 2]
        expect_error(NotFound, lambda: files.open([str(root / "x*.csv")]))
        expect_error(NotFound, lambda: files.open([root / "x.csv"]))

    def test_the_caller_names_the_types_of_text(self) -> None:
        """A column of the schema that a file lacks does not appear."""
        files, root, _ = self.make_row_files()
        (root / "a.csv").write_text("id\n007\n")
        (root / "a.jsonl").write_text('{"id": "7"}\n')
        schema = pa.schema([("id", pa.string()), ("other", pa.int32())])
        for name, text in (("a.csv", "007"), ("a.jsonl", "7")):
            pieces = [piece for _, piece in files.open([root / name]).read(schema)]
            tables = [piece if isinstance(piece, pa.Table) else pa.Table.from_pylist(piece) for piece in pieces]
            assert pa.concat_tables(tables).to_pydict() == {"id": [text]}

    def test_files_can_be_read_again_and_streams_cannot(self) -> None:
        """A stream needs the name of its format."""
        files, root, _ = self.make_row_files()
        (root / "a.csv").write_text("id\n1\n")
        rows = files.open([root / "a.csv"])
        assert rows.is_repeatable and _ids(rows) == _ids(rows) == [1]
        stream = files.open([io.BytesIO(b'{"id": 1}\n')], "json")
        assert not stream.is_repeatable
        assert [piece.num_rows for _, piece in stream.read() if isinstance(piece, pa.Table)] == [1]
        expect_error(InvalidRequest, lambda: files.open([io.BytesIO(b"")]))

    def test_no_file_outside_the_roots_is_opened(self) -> None:
        """Not by its name, `..`, a link, a pattern or a URL. Links within the roots are followed."""
        files, root, outside = self.make_row_files()
        for directory in (root, outside):
            (directory / "a.csv").write_text("id\n1\n")
        (root / "inner.csv").symlink_to(root / "a.csv")
        (root / "links").mkdir()
        (root / "links" / "out.csv").symlink_to(outside / "a.csv")
        (root / "linked").symlink_to(outside)
        paths = [root / "links" / "out.csv", root / "linked" / "a.csv", outside / "a.csv", root / "links" / "*.csv"]
        for path in (
            *map(str, paths),
            f"{root}/x/../../{outside.name}/a.csv",
            outside.as_uri() + "/a.csv",
            "memory://a",
        ):
            expect_error(InvalidRequest, lambda path=path: files.open([path], "csv", roots=[str(root)]))  # type: ignore[misc]
        expect_error(InvalidRequest, lambda: files.open([root / "a.csv"], roots=[]))
        assert _ids(files.open([root / "inner.csv"], roots=[str(outside), str(root)])) == [1]

    def test_a_created_file_appears_when_it_is_closed(self) -> None:
        """It replaces one of its name; one that is aborted leaves nothing."""
        files, root, _ = self.make_row_files()
        path = root / "new" / "a.csv"
        for text in (b"id\n1\n", b"id\n2\n"):
            before = path.read_bytes() if path.exists() else None
            output = files.create(str(path), [str(root)])
            output.write(text)
            assert (path.read_bytes() if path.exists() else None) == before
            output.close()
            assert path.read_bytes() == text
        output = files.create(str(path), [str(root)])
        output.write(b"3")
        output.abort()
        assert [(file.name, file.read_bytes()) for file in path.parent.iterdir()] == [("a.csv", b"id\n2\n")]

    def test_no_file_is_created_outside_the_roots(self) -> None:
        """Nor through a link to a directory."""
        files, root, outside = self.make_row_files()
        (root / "linked").symlink_to(outside)
        for path in (outside / "a.csv", root / "linked" / "a.csv", root / ".." / outside.name / "a.csv", root):
            expect_error(InvalidRequest, lambda path=path: files.create(str(path), [str(root)]))  # type: ignore[misc]
        assert not list(outside.iterdir())

    def test_tables_and_protected_directories_get_no_file(self) -> None:
        """Nor through a link."""
        files, root, outside = self.make_row_files()
        (outside / "t" / "schema").mkdir(parents=True)
        (outside / "t" / "schema" / "schema-0").write_text("{}")
        (root / "linked").symlink_to(outside / "t")
        roots = [str(root), str(outside)]
        for path in (outside / "t" / "a.csv", outside / "t" / "snapshot" / "LATEST", root / "linked" / "a.csv"):
            expect_error(InvalidRequest, lambda path=path: files.create(str(path), roots))  # type: ignore[misc]
        expect_error(InvalidRequest, lambda: files.create(str(root / "a" / "b.csv"), roots, [str(root / "a")]))
        files.create(str(root / "ab.csv"), roots, [str(root / "a")]).close()
        assert (root / "ab.csv").exists()


def _ids(rows: FileRows) -> list[object]:
    return list(rows.to_reader(["id"]).read_all()["id"].to_pylist())
