"""RowFiles with pyarrow: Parquet, ORC, Avro, CSV, JSON lines and Arrow files, also compressed, on any storage.

Invariant: a file becomes a stream of pieces with its own types. Text formats use the types of the caller where
possible; JSON lines that Arrow cannot read become plain rows. A format that needs more than one pass is unpacked into a
temporary file first. Files outside the roots of a call are refused before one is opened.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from attrs import frozen

from paimon.adapters.text_rows import read_csv, read_json_lines
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, PaimonError
from paimon.domain.secrets import has_password
from paimon.domain.types.ddl import to_fields
from paimon.ports.files import FileIO, OutputFile
from paimon.ports.formats import FileInspection, FormatIO, ReadRequest
from paimon.ports.row_files import ROW_FILE_ENDINGS, ROW_FILE_FORMATS, FileRows, Piece, RowFile

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

OpenStorage = Callable[[str, Mapping[str, object], Sequence[str]], FileIO]
"""Returns the files at a location, with storage options; links may not lead out of the roots, if there are any."""
_COMPRESSIONS = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".xz": "xz",
    ".zip": "zip",
}
_PATTERN = re.compile(r"[*?\[]")
_COPIED_BYTES = 1 << 20


@frozen(eq=False)
class _Source:
    """A file to read: its name in messages, what opens its bytes, and how they are packed."""

    name: str
    open: Callable[[], Any]
    compression: str | None
    is_seekable: bool = True


@frozen(eq=False)
class ArrowRowFiles:
    """`paimon.ports.row_files.RowFiles` on storages that a function opens; `formats` has the reader of Avro."""

    open_storage: OpenStorage
    locate: Callable[[Any], str]
    formats: Mapping[str, FormatIO]

    def open(
        self,
        sources: Sequence[Any],
        format_name: str | None = None,
        storage: Mapping[str, object] | None = None,
        roots: Sequence[str] | None = None,
    ) -> FileRows:
        """Find files; see `RowFiles`."""
        if format_name is not None and format_name not in ROW_FILE_FORMATS:
            hint = f"use one of {', '.join(ROW_FILE_FORMATS)}"
            raise InvalidRequest(f"File format {format_name!r} is not known.", subject="format", hint=hint)
        roots = None if roots is None else self._locate_roots(roots)
        found: list[RowFile] = []
        is_repeatable = True
        for source in sources:
            if isinstance(source, str | os.PathLike):
                found += self._find_files(os.fspath(source), format_name, storage or {}, roots)
            else:
                found.append(self._take_stream(source, format_name))
                is_repeatable = False
        if not found:
            raise InvalidRequest("No file was given.", subject="source", hint="pass a path")
        return FileRows(found, is_repeatable)

    def create(self, path: str, roots: Sequence[str], protected: Sequence[str] = ()) -> OutputFile:
        """Begin a file; see `RowFiles`."""
        _refuse_password(path)
        roots = self._locate_roots(roots)
        location, root = self._locate_inside(path, roots)
        files = self.open_storage(root, {}, roots)
        owner = _find_owner(files, _follow_links(location), [_follow_links(self.locate(place)) for place in protected])
        if owner is not None:
            hint = "write the file to another directory"
            message = f"File {path!r} is in the directory of a table or warehouse: {owner}."
            raise InvalidRequest(message, subject=path, hint=hint)
        try:
            return files.create(location)
        except CorruptTable as error:
            raise _outside_error(path, roots) from error

    def _take_stream(self, stream: Any, format_name: str | None) -> RowFile:
        name = str(getattr(stream, "name", None) or type(stream).__name__)
        name = "standard input" if name == "<stdin>" else name
        if not callable(getattr(stream, "read", None)):
            hint = "pass a path, a URL, a pattern, or a file that is open for reading bytes"
            raise InvalidRequest(f"A {type(stream).__name__} is not a file.", subject="source", hint=hint)
        if format_name is None:
            hint = f"pass its format, one of {', '.join(ROW_FILE_FORMATS)}"
            raise InvalidRequest(f"File {name!r} is a stream, whose format is unknown.", subject=name, hint=hint)
        source = _Source(name, lambda: nullcontext(stream), None, is_seekable=False)
        return RowFile(name, partial(self._read, source, format_name), has_one_schema=format_name != "json")

    def _find_files(
        self, text: str, format_name: str | None, storage: Mapping[str, object], roots: Sequence[str] | None
    ) -> list[RowFile]:
        _refuse_password(text)
        location, root = (self.locate(text), "") if roots is None else self._locate_inside(text, roots)
        # The location that storage is opened for is allowed, so it must not be a link.
        files = self.open_storage(root or location, storage, roots or ())
        try:
            status = files.status(location)
            if status is not None and not status.is_directory:
                names = [(text, location)]
            elif status is None and _PATTERN.search(text):
                names = [(path, path) for path in _expand_pattern(files, location)]
                for path, _ in names:
                    files.status(path)  # refuses a link that leads outside
            else:
                names = []
        except CorruptTable as error:
            if roots is None:
                raise
            raise _outside_error(text, roots) from error
        if not names:
            if status is not None:
                hint = f"name its files, such as {text.rstrip('/')}/*.parquet"
                raise InvalidRequest(f"{text!r} is a directory, not a file.", subject=text, hint=hint)
            raise NotFound("file", text, hint="check the path; it is relative to the current directory")
        return [self._describe(name, path, files, format_name) for name, path in names]

    def _locate_roots(self, roots: Sequence[str]) -> tuple[str, ...]:
        for root in roots:
            _refuse_password(root)
        found = tuple(map(self.locate, roots))
        for root, location in zip(roots, found, strict=True):
            if location.endswith(":"):
                hint = "name a bucket or host, such as s3://bucket"
                raise InvalidRequest(f"Root {root!r} allows a whole scheme.", subject=root, hint=hint)
        return found

    def _locate_inside(self, text: str, roots: Sequence[str]) -> tuple[str, str]:
        """Return the location of a path and its root; refuse it if it is not below a root by its name."""
        # Servers, and clients of HTTP, resolve two dots in a URL, also as %2e.
        leaves = "://" in text and ".." in re.split(r"[/\\]", unquote(text))
        if text.startswith("~") or "::" in text or leaves:
            raise _outside_error(text, roots)
        location = self.locate(text)
        root = next((root for root in roots if location.startswith(f"{root.rstrip('/')}/")), None)
        if root is None:
            raise _outside_error(text, roots)
        return location, root

    def _describe(self, name: str, path: str, files: FileIO, format_name: str | None) -> RowFile:
        stem, ending = os.path.splitext(path)
        compression = _COMPRESSIONS.get(ending.lower())
        ending = os.path.splitext(stem)[1] if compression else ending
        chosen = format_name or ROW_FILE_ENDINGS.get(ending.lower())
        if chosen is None:
            hint = (
                f"rename it to one of {', '.join(ROW_FILE_ENDINGS)}, or pass its format: {'|'.join(ROW_FILE_FORMATS)}"
            )
            message = f"File {name!r}: the extension {ending!r} names no known format."
            raise InvalidRequest(message, subject=name, hint=hint)
        source = _Source(name, lambda: files.open(path), compression)
        return RowFile(name, partial(self._read, source, chosen), has_one_schema=chosen != "json")

    def _read(self, source: _Source, format_name: str, schema: pa.Schema | None) -> Iterator[Piece]:
        try:
            if format_name in _STREAM_READERS:
                with _unpack(source) as stream:
                    yield from _STREAM_READERS[format_name](stream, schema, source.name)
                return
            with _unpack_seekable(source) as file:
                if format_name == "avro":
                    yield from self._read_avro(file, source.name)
                else:
                    yield from _FILE_READERS[format_name](file)
        except PaimonError:
            raise
        except _list_damage() as error:
            what = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = "repair the file, or pass its format if it is another one"
            if format_name == "csv":  # pyarrow infers the types of texts from the first rows
                hint = "repair the file, or write it to a table whose columns declare types that fit, such as STRING"
            raise CorruptTable(source.name, f"cannot be read as {format_name}: {what}", hint=hint) from error

    def _read_avro(self, file: pa.NativeFile, name: str) -> Iterator[Piece]:
        form = self.formats["avro"]
        assert isinstance(form, FileInspection)
        schema = form.inspect(file, name).schema
        file.seek(0)
        for batch in form.read(file, ReadRequest(name, tuple(to_fields(schema)))):
            yield pa.Table.from_batches([batch])
        yield schema.empty_table()


def _list_damage() -> tuple[type[Exception], ...]:
    """Return the errors of libraries for files of another format; a zip file with a password is a RuntimeError."""
    from lzma import LZMAError
    from zipfile import BadZipFile
    from zlib import error as zlib_error

    broken = (UnicodeDecodeError, JSONDecodeError, OSError, EOFError, NotImplementedError, RuntimeError)
    return (pa.ArrowException, LZMAError, BadZipFile, zlib_error, *broken)


def _refuse_password(text: str) -> None:
    if has_password(text):
        hint = "pass user and password as storage options, which never appear in messages"
        raise InvalidRequest("The URL of a file has credentials.", subject="source", hint=hint)


def _follow_links(location: str) -> str:
    """Return the location of a name, which is not followed itself, behind the links of its directory."""
    if "://" in location:
        return location
    directory, name = os.path.split(location)
    return os.path.join(os.path.realpath(directory), name)


def _find_owner(files: FileIO, location: str, protected: Sequence[str]) -> str | None:
    """Return the protected directory, or the directory of a table, that contains a file; None if there is none."""
    for place in protected:
        if location.startswith(f"{place.rstrip('/')}/"):
            return place
    directory = location.rpartition("/")[0]
    while directory and not directory.endswith("/"):
        if files.status(f"{directory}/schema/schema-0") is not None:
            return directory
        directory = directory.rpartition("/")[0]
    return None


def _outside_error(text: str, roots: Sequence[str]) -> InvalidRequest:
    allowed = ", ".join(roots) or "none"
    return InvalidRequest(
        f"File {text!r} is outside the allowed directories: {allowed}.",
        subject=text,
        hint="move it, or allow its directory with allowed_files=[…] or --allow-files",
    )


def _expand_pattern(files: FileIO, location: str) -> list[str]:
    """Return the files that a pattern matches, in the order of their paths; hidden ones need a pattern with a dot."""
    fixed, *parts = re.split(r"/(?=[^/]*[*?\[])", location, maxsplit=1)
    found = [fixed]
    pieces = parts[0].split("/") if parts else []
    for number, part in enumerate(pieces):
        is_last = number == len(pieces) - 1
        entered: list[str] = []
        for directory in found:
            if part == "**" and not is_last:
                entered += _list_directories(files, directory)
            else:
                entered += [
                    status.path
                    for status in files.list(directory or "/")
                    if fnmatch.fnmatchcase(status.name, part)
                    and status.is_directory != is_last
                    and (part.startswith(".") or not status.name.startswith("."))
                ]
        found = entered
    return sorted(found)


def _list_directories(files: FileIO, directory: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a directory and those below it; a link to a directory that contains it is not followed."""
    real = directory if "://" in directory else os.path.realpath(directory)
    if real in above:
        return
    yield directory
    for status in files.list(directory):
        if status.is_directory and not status.name.startswith("."):
            yield from _list_directories(files, status.path, (*above, real))


@contextmanager
def _unpack(source: _Source) -> Iterator[Any]:
    """Open the unpacked bytes as a stream."""
    with source.open() as stream:
        if source.compression is None:
            yield stream
        elif source.compression == "xz":
            import lzma  # these modules are for few files

            with lzma.open(stream) as unpacked:
                yield unpacked
        elif source.compression == "zip":
            from zipfile import ZipFile

            with ZipFile(stream) as archive, archive.open(_only_member(archive, source.name)) as member:
                yield member
        else:
            with pa.CompressedInputStream(stream, source.compression) as unpacked:
                yield unpacked


def _only_member(archive: ZipFile, name: str) -> ZipInfo:
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        hint = "unpack the archive, and pass its files"
        raise InvalidRequest(f"Archive {name!r} contains {len(members)} files, not one.", subject=name, hint=hint)
    return members[0]


@contextmanager
def _unpack_seekable(source: _Source) -> Iterator[pa.NativeFile]:
    """Open the unpacked bytes for random access, as a temporary file where they are packed or a stream."""
    if source.is_seekable and source.compression is None:
        with source.open() as file:
            yield file
        return
    from shutil import copyfileobj
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(prefix="paimon-input-") as copy:
        with _unpack(source) as stream:
            copyfileobj(stream, copy, _COPIED_BYTES)
        copy.flush()
        with pa.OSFile(copy.name) as file:
            yield file


def _read_parquet(file: pa.NativeFile) -> Iterator[Piece]:
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        yield opened.schema_arrow.empty_table()
        for batch in opened.iter_batches():
            yield pa.Table.from_batches([batch])


def _read_orc(file: pa.NativeFile) -> Iterator[Piece]:
    from pyarrow import orc

    opened = orc.ORCFile(file)
    yield opened.schema.empty_table()
    for stripe in range(opened.nstripes):
        yield pa.Table.from_batches([opened.read_stripe(stripe)])


def _read_arrow(file: pa.NativeFile) -> Iterator[Piece]:
    from pyarrow import feather

    has_footer = file.read(6) == b"ARROW1"
    file.seek(0)
    if not has_footer:
        try:
            with pa.ipc.open_stream(file) as reader:
                yield reader.schema.empty_table()
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid:
            file.seek(0)
            yield feather.read_table(file)  # version 1
        return
    with pa.ipc.open_file(file) as reader:
        yield reader.schema.empty_table()
        for index in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(index)])


_STREAM_READERS: Mapping[str, Callable[[Any, pa.Schema | None, str], Iterator[Piece]]] = {
    "csv": read_csv,
    "json": read_json_lines,
}
_FILE_READERS: Mapping[str, Callable[[pa.NativeFile], Iterator[Piece]]] = {
    "parquet": _read_parquet,
    "orc": _read_orc,
    "arrow": _read_arrow,
}
