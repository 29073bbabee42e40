"""Files of a table by the names of pypaimon: the methods with which programs look at metadata and put their own files.

Source: `pypaimon.common.file_io`, `pypaimon.filesystem.local_file_io`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
from attrs import frozen

import paimon
from paimon.compat.refused import PeerClass
from paimon.domain.errors import NotFound
from paimon.engines import engine_for, location_of
from paimon.ports.engine import Engine
from paimon.ports.files import Directories, OutputFile, PutOutcome
from paimon.ports.files import FileStatus as PaimonFileStatus

Range = tuple[str | None, int | None, int | None]
"""A path, a position and a length; a negative length reads to the end of the file."""

_LOGGER = logging.getLogger(__name__)


@frozen
class FileStatus:
    """One file or directory."""

    path: str
    base_name: str
    size: int | None
    type: pafs.FileType
    mtime: float | None

    @property
    def original_path(self) -> str:
        """The path as it was given."""
        return self.path


class FileIO(PeerClass):
    """The storage of a table, made by `FileStoreTable.file_io`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._files = engine.files

    @staticmethod
    def get(path: str, catalog_options: Any = None) -> FileIO:
        """Return the storage of a path."""
        options: Mapping[str, Any] = getattr(catalog_options, "data", catalog_options) or {}
        storage = {key: value for key, value in options.items() if key not in ("warehouse", "metastore")}
        return FileIO(engine_for(location_of(path), storage, {}))

    def exists(self, path: str) -> bool:
        """Return whether there is a file or a directory."""
        return self._files.status(path) is not None

    def exists_batch(self, paths: Iterable[str]) -> dict[str, bool]:
        """Return for each path whether there is a file or a directory."""
        return {path: self.exists(path) for path in paths}

    def get_file_status(self, path: str) -> FileStatus:
        """Return what is at a path."""
        status = self._files.status(path)
        if status is None:
            raise FileNotFoundError(f"File {path} does not exist")
        return _to_status(status)

    def list_status(self, path: str) -> list[FileStatus]:
        """Return the entries of a directory."""
        self.get_file_status(path)
        return [_to_status(status) for status in self._files.list(path)]

    def list_names(self, path: str) -> list[str]:
        """Return the names of the entries of a directory; none of one that does not exist."""
        return [] if not self.exists(path) else [entry.name for entry in self._files.list(path)]

    def get_file_size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        size = self.get_file_status(path).size
        if size is None:
            raise ValueError(f"File size not available for {path}")
        return size

    def is_dir(self, path: str) -> bool:
        """Return whether a path is that of a directory."""
        return bool(self.get_file_status(path).type == pafs.FileType.Directory)

    def check_or_mkdirs(self, path: str) -> None:
        """Create a directory, if it does not exist."""
        if self.exists(path) and not self.is_dir(path):
            raise ValueError(f"The path '{path}' should be a directory.")
        self.mkdirs(path)

    def mkdirs(self, path: str) -> bool:
        """Create a directory with its parents; a storage of objects has none to create."""
        if self.exists(path) and not self.is_dir(path):
            raise FileExistsError(f"Path exists but is not a directory: {path}")
        if isinstance(self._files, Directories):
            self._files.make_directory(path)
        return True

    def new_input_stream(self, path: str) -> pa.NativeFile:
        """Open a file to read."""
        try:
            return self._files.open(path)
        except NotFound as error:
            raise FileNotFoundError(f"File {path} does not exist") from error

    def new_output_stream(self, path: str) -> OutputFile:
        """Open a file to write; it is visible when the stream is closed, and replaces an earlier one."""
        if self.exists(path):
            self._files.delete([path])
        return self._files.create(path)

    def read_file_utf8(self, path: str) -> str:
        """Return the text of a file."""
        with self.new_input_stream(path) as source:
            return bytes(source.read()).decode("utf8")

    def read_overwritten_file_utf8(self, path: str) -> str | None:
        """Return the text of a file that others replace; None if there is none."""
        try:
            return self.read_file_utf8(path)
        except FileNotFoundError:
            return None

    def read_file_range(self, path: str, offset: int, length: int) -> bytes:
        """Return bytes of a file."""
        with self.new_input_stream(path) as source:
            source.seek(offset)
            return bytes(source.read() if length < 0 else source.read(length))

    def read_ranges_coalesced(self, ranges: Sequence[Range | None], parallelism: int) -> list[bytes | None]:
        """Return the bytes of ranges, in their order; each file is opened once. A range without a place is None."""
        results: list[bytes | None] = [None] * len(ranges)
        by_path: dict[str, list[tuple[int, int, int]]] = {}
        for index, wanted in enumerate(ranges):
            if wanted is not None and wanted[0] is not None and wanted[1] is not None and wanted[2] is not None:
                by_path.setdefault(wanted[0], []).append((index, wanted[1], wanted[2]))
        for path, places in by_path.items():
            with self.new_input_stream(path) as source:
                for index, offset, length in places:
                    source.seek(offset)
                    results[index] = bytes(source.read() if length < 0 else source.read(length))
        return results

    def write_file(self, path: str, content: str, overwrite: bool = False) -> None:
        """Write a text."""
        if overwrite:
            self._files.replace(path, content.encode("utf8"))
        elif self._files.put_if_absent(path, content.encode("utf8")) is PutOutcome.EXISTS:
            raise FileExistsError(f"File {path} already exists and overwrite=False")

    def overwrite_file_utf8(self, path: str, content: str) -> None:
        """Write a text, in place of an earlier one."""
        self._files.replace(path, content.encode("utf8"))

    def try_to_write_atomic(self, path: str, content: str) -> bool:
        """Write a text if there is no such file; return whether this call created it."""
        if self.exists(path):
            return False
        return self._files.put_if_absent(path, content.encode("utf8")) is PutOutcome.CREATED

    def copy_file(self, source_path: str, target_path: str, overwrite: bool = False) -> None:
        """Copy a file."""
        if not overwrite and self.exists(target_path):
            raise FileExistsError(f"Target file {target_path} already exists and overwrite=False")
        with self.new_input_stream(source_path) as source, self.new_output_stream(target_path) as target:
            while data := source.read(1 << 20):
                target.write(data)

    def copy_files(self, source_directory: str, target_directory: str, overwrite: bool = False) -> None:
        """Copy the files of a directory, without those in its directories."""
        for status in self.list_status(source_directory):
            if status.type == pafs.FileType.File:
                self.copy_file(status.path, f"{target_directory.rstrip('/')}/{status.base_name}", overwrite)

    def rename(self, src: str, dst: str) -> bool:
        """Give a file or a directory another path; return False if the source is missing or the target exists."""
        if not self.exists(src) or self.exists(dst):
            return False
        if self.is_dir(src):
            if not isinstance(self._files, Directories):
                return False
            self._files.move_directory(src, dst)
            return True
        self.copy_file(src, dst)
        self._files.delete([src])
        return True

    def delete(self, path: str, recursive: bool = False) -> bool:
        """Delete a file or a directory; return whether there was one."""
        if not self.exists(path):
            return False
        if self.is_dir(path):
            if self._files.list(path) and not recursive:
                raise OSError(f"Directory {path} is not empty")
            self._delete_directory(path)
        self._files.delete([path])
        return True

    def _delete_directory(self, path: str) -> None:
        if isinstance(self._files, Directories):
            self._files.delete_directory(path)
            return
        for status in self._files.list(path):
            if status.is_directory:
                self._delete_directory(status.path)
        self._files.delete([status.path for status in self._files.list(path) if not status.is_directory])

    def delete_quietly(self, path: str) -> None:
        """Delete a file; a failure is logged as a warning."""
        self._delete_quietly(path, recursive=False)

    def delete_files_quietly(self, files: Iterable[str]) -> None:
        """Delete files; failures are logged as warnings."""
        for path in files:
            self._delete_quietly(path, recursive=False)

    def delete_directory_quietly(self, directory: str) -> None:
        """Delete a directory with its content; a failure is logged as a warning."""
        self._delete_quietly(directory, recursive=True)

    def _delete_quietly(self, path: str, recursive: bool) -> None:
        try:
            self.delete(path, recursive)
        except (OSError, paimon.PaimonError) as error:
            _LOGGER.warning("%s could not be deleted: %s", path, error)

    def to_filesystem_path(self, path: str) -> str:
        """Return a path without the scheme of local files."""
        return path.removeprefix("file://").removeprefix("file:")

    def parse_location(self, location: str) -> tuple[str, str, str]:
        """Return the scheme, the host and the path of a location."""
        parts = urlsplit(location)
        if not parts.scheme:
            return "file", "", location_of(location)
        return parts.scheme, parts.netloc, f"{parts.netloc}{parts.path}"

    def close(self) -> None:
        """Do nothing: connections belong to the process."""


def _to_status(status: PaimonFileStatus) -> FileStatus:
    kind = pafs.FileType.Directory if status.is_directory else pafs.FileType.File
    changed = None if status.modified_millis is None else status.modified_millis / 1000
    return FileStatus(status.path, status.name, None if status.is_directory else status.size, kind, changed)
