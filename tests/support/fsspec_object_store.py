"""A small object store for fsspec: uploads become visible on commit, and exclusive creates are atomic."""

from __future__ import annotations

import threading
from typing import Any

import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

_LOCK = threading.Lock()


class Upload(AbstractBufferedFile):
    """An upload that is stored at its commit."""

    def _initiate_upload(self) -> None:
        self.parts = []

    def _upload_chunk(self, final: bool = False) -> bool:
        self.parts.append(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        self.fs.pipe_file(self.path, b"".join(self.parts))

    def discard(self) -> None:
        self.parts = []


class ObjectStore(MemoryFileSystem):
    """A store with put-if-absent: an exclusive create fails if the object exists."""

    protocol = "az"
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012

    def _open(self, path: str, mode: str = "rb", autocommit: bool = True, **options: Any) -> Any:
        if mode == "wb":
            return Upload(self, path, mode, autocommit=autocommit)
        return super()._open(path, mode, **options)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        with _LOCK:
            if mode == "create" and self.exists(path):
                raise FileExistsError(path)
            super()._open(path, "wb", data=value)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + str(path).removeprefix("az://").removeprefix("gcs://").strip("/")


class OverwritingStore(ObjectStore):
    """Accept an exclusive create, but overwrite."""

    protocol = "gcs"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        super().pipe_file(path, value)


def register() -> None:
    """Make ``az://`` and ``gcs://`` mean these."""
    fsspec.register_implementation("az", ObjectStore, clobber=True)
    fsspec.register_implementation("gcs", OverwritingStore, clobber=True)
