"""Create, move and delete the directories of databases and tables, for every catalog.

Invariant: a directory is a table if and only if it contains a schema file. Where the storage can move directories, a
dropped one is first moved to a hidden name. Elsewhere files are copied and deleted: of all calls that create a table or
rename one to a name, exactly one puts the first schema file of the name. A table is deleted only after its copy was
published, and then listed whole.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress

from attrs import field, frozen

from paimon.domain.errors import AlreadyExists, NotFound, PaimonError, StorageError
from paimon.domain.json_text import SCHEMA_FILE
from paimon.domain.paths import TablePaths, join_path
from paimon.domain.schema.table_schema import check_not_reserved, encode_reservation, is_reserved
from paimon.domain.undo import undo_on_failure
from paimon.ports.files import Directories, FileIO, PutOutcome

# A rename by copies takes long, and other processes work meanwhile: they create a table under the new name, rename
# another one to it, or commit into the old table. So the call first reserves the new name, as `create_table` does: by
# one `put_if_absent` of the first schema file. Its content is a reservation, no schema:
#
#     step              t (old name)                u (new name)
#     1 reserve         schema-0 snapshot-1 data-1  schema-0: "reserved for '…/t' …"
#     2 copy            the same                    data-1 manifest-1
#     3 references      the same                    snapshot-1 LATEST
#     4 publish         the same                    schema-0: that of t and a line break
#     5 list u again    the same                    the table
#     6 delete schemas  snapshot-1 data-1           the table
#     7 delete the rest                             the table
#
# A reserved name cannot be opened, here or in Java, so no other process commits into it. If the process dies in steps 1
# to 3, t is the table, and u stays reserved until it is dropped. From step 4 on, u is the table. Step 6 is early,
# because a commit into t that is acknowledged after step 3 is in no table.
#
# A drop of u just before step 4 deletes the copies, and step 4 then publishes a table without files. Step 5 finds that
# they are missing and withdraws the schema, so t stays the table.
#
# References are snapshots, tags and changelogs. They are read before the other files are listed, because files are
# written before what references them. They are written after the other files, so that a reservation that is lost
# meanwhile leaves none in the table of another process.
#
# The line break makes the copy another table for commits in progress: it lacks the files that they write meanwhile,
# also if the table is renamed back before they are published.


_COPY_BYTES = 8 * 1024 * 1024
_DISTURBED = "another process committed, deleted files or dropped the table while another one was renamed to it"
_HINTS = ("LATEST", "EARLIEST")


def copy_table(files: FileIO, source: str, target: str) -> None:
    """Copy the directory of a table to a path where nothing exists; `delete_copied_table` deletes the source then."""
    first = TablePaths(source).schema(0)
    schema = files.read(first, SCHEMA_FILE.max_bytes)
    check_not_reserved(schema, first)
    if files.status(target) is not None:
        raise AlreadyExists("directory", target, hint=explain_occupied_name(files, target))
    copy = _Copy(files, source, target, encode_reservation(source, str(uuid.uuid4())))
    copy.reserve()
    with undo_on_failure(copy.delete):
        references = {path: files.read(path) for path in _list_files(files, source) if _is_reference(path, source)}
        others = [path for path in _list_files(files, source) if path != first and not _is_reference(path, source)]
        schemas = [path for path in others if path.rpartition("/")[0] == TablePaths(source).schemas]
        for path in (path for path in others if path not in schemas):
            copy.copy_file(path)
        copy.check_reserved()
        for path, data in references.items():
            copy.put_reference(path, data)
        for path in schemas:
            copy.copy_file(path)
        copy.check_whole()
        copy.publish(schema + b"\n")
        copy.confirm(schema + b"\n")


def delete_copied_table(files: FileIO, path: str) -> None:
    """Delete the directory of a table that was copied: schemas first, so that no commit into it is acknowledged."""
    files.delete([status.path for status in files.list(TablePaths(path).schemas)])
    left = list(_list_files(files, path, is_hidden_too=True))
    files.delete([p for p in left if _is_reference(p, path)])
    files.delete([p for p in left if not _is_reference(p, path)])


def delete_directory(files: FileIO, path: str) -> None:
    """Delete a directory and all in it, schemas last, so that it can be repeated; a reservation goes first."""
    paths = TablePaths(path)
    if is_reserved(_read_if_found(files, paths.schema(0))):
        files.delete([paths.schema(0)])
    found = list(_list_files(files, path, is_hidden_too=True))
    schemas = [p for p in found if p.startswith(paths.schemas + "/")]
    files.delete([p for p in found if p not in schemas])
    files.delete(schemas)


def explain_occupied_name(files: FileIO, path: str) -> str | None:
    """Return what to do about a name that no table can get; None if it is that of a table."""
    first = TablePaths(path).schema(0)
    stored = _read_if_found(files, first)
    if stored is None:
        return f"no table uses the directory {path!r}, which has files of a dropped or renamed table: delete it"
    try:
        check_not_reserved(stored, first)
    except NotFound as error:
        return error.hint
    return None


@frozen(eq=False)
class _Copy:
    """A copy in progress. A state machine: it remembers what it began to write, and of references the content."""

    files: FileIO
    source: str
    target: str
    reservation: bytes
    written: dict[str, bytes | None] = field(factory=dict, init=False)

    @property
    def first_schema(self) -> str:
        return TablePaths(self.target).schema(0)

    def reserve(self) -> None:
        """Put the reservation; AlreadyExists if another process was first. An outcome in doubt is read."""
        if self.files.put_if_absent(self.first_schema, self.reservation) is PutOutcome.CREATED:
            return
        stored = _read_if_found(self.files, self.first_schema)
        if stored is None:
            reason = "the storage does not show whether the file was written"
            raise StorageError(self.first_schema, reason, hint="try again")
        if stored != self.reservation:
            raise AlreadyExists("table", self.target, hint=explain_occupied_name(self.files, self.target))

    def check_reserved(self) -> None:
        """Check that no process dropped the reservation."""
        if _read_if_found(self.files, self.first_schema) != self.reservation:
            raise StorageError(self.target, _DISTURBED, hint="rename it again")

    def check_whole(self) -> None:
        """Check that no process deleted a part of the copy, and that no late commit of a dropped table is in it."""
        self.check_reserved()
        found = set(_list_files(self.files, self.target))
        others = {p for p in found - self.written.keys() if _is_reference(p, self.target)}
        if others or not self.written.keys() <= found:
            raise StorageError(min(others, default=self.target), _DISTURBED, hint="rename it again")

    def copy_file(self, path: str) -> None:
        """Copy a file. The copy of a schema ends with one more line break."""
        name = path.removeprefix(self.source)
        copied = join_path(self.target, name)
        self.written[copied] = None
        with self.files.open(path) as original, self.files.create(copied) as copy:
            while piece := original.read(_COPY_BYTES):
                copy.write(piece)
            if "/schema/schema-" in name:
                copy.write(b"\n")

    def put_reference(self, path: str, data: bytes) -> None:
        """Write the copy of a reference. A late commit of a dropped table may have its name."""
        copied = join_path(self.target, path.removeprefix(self.source))
        self.written[copied] = data
        if path.endswith(_HINTS):
            self.files.replace(copied, data)
            return
        outcome = self.files.put_if_absent(copied, data)
        if outcome is not PutOutcome.CREATED and _read_if_found(self.files, copied) != data:
            hint = "another process wrote it during the rename: rename the table again"
            raise AlreadyExists("file", copied, hint=hint)

    def publish(self, schema: bytes) -> None:
        """Replace the reservation by the schema. An error after the file was written is none."""
        try:
            with self.files.create(self.first_schema) as file:
                file.write(schema)
        except StorageError:
            if _read_if_found(self.files, self.first_schema) != schema:
                raise

    def confirm(self, schema: bytes) -> None:
        """Check that no drop deleted copies before the publication; otherwise withdraw the schema."""
        is_whole = self.written.keys() <= set(_list_files(self.files, self.target))
        is_published = _read_if_found(self.files, self.first_schema) == schema
        if is_whole and is_published:
            return
        if is_published:
            self.files.delete([self.first_schema])
        raise StorageError(self.target, _DISTURBED, hint="rename it again")

    def delete(self) -> None:
        """Delete a failed copy, its reservation last, unless the name is that of another table by now."""
        with suppress(PaimonError):
            if _read_if_found(self.files, self.first_schema) in (self.reservation, None):
                copies = self.written.items()
                self.files.delete([p for p, d in copies if d is None or _read_if_found(self.files, p) == d])
                self.files.delete([self.first_schema])


def _read_if_found(files: FileIO, path: str) -> bytes | None:
    try:
        return files.read(path)
    except NotFound:
        return None


def _is_reference(path: str, root: str) -> bool:
    """Return whether a file of a table references manifests, or is a hint."""
    return any(f"/{folder}/" in path.removeprefix(root) for folder in ("snapshot", "tag", "changelog"))


def _list_files(files: FileIO, path: str, is_hidden_too: bool = False) -> Iterator[str]:
    """Yield the paths of all files below a directory. Hidden files are not finished, or of a process that died."""
    for status in files.list(path):
        if status.is_directory:
            yield from _list_files(files, status.path, is_hidden_too)
        elif is_hidden_too or not status.name.startswith("."):
            yield status.path


DATABASE_SUFFIX = ".db"
_DATABASE_MARKER = "_database"


def is_table(files: FileIO, path: str) -> bool:
    """Return whether the directory contains a schema file."""
    return any(s.name.startswith("schema-") for s in files.list(TablePaths(path).schemas))


def default_database_path(warehouse: str, database: str) -> str:
    """Return the directory of a database in a warehouse, ``WAREHOUSE/DATABASE.db``."""
    return join_path(warehouse, database + DATABASE_SUFFIX)


def make_database_directory(files: FileIO, path: str) -> None:
    """Create a directory, or an empty marker file in it where the storage has no directories. Idempotent."""
    if isinstance(files, Directories):
        files.make_directory(path)
    if files.status(path) is None:
        files.put_if_absent(join_path(path, _DATABASE_MARKER), b"")


def drop_directory(files: FileIO, path: str) -> None:
    """Delete a directory with all its content."""
    if isinstance(files, Directories):
        parent, _, name = path.rpartition("/")
        hidden = join_path(parent, f".{name}.{uuid.uuid4()}.dropped")
        files.move_directory(path, hidden)
        files.delete_directory(hidden)
    else:
        delete_directory(files, path)


def move_directory(files: FileIO, source: str, target: str) -> None:
    """Move a table's directory to a new path; a storage without directories needs `delete_moved_directory` after."""
    if isinstance(files, Directories):
        files.move_directory(source, target)
    else:
        copy_table(files, source, target)


def delete_moved_directory(files: FileIO, source: str) -> None:
    """Delete what a move by copies left of a table."""
    if not isinstance(files, Directories):
        delete_copied_table(files, source)
