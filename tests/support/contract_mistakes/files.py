"""Wrong storages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import evolve

from paimon.adapters.files.local import LocalFiles, LocalOutputFile
from paimon.adapters.files.output import BufferedOutput
from paimon.domain.errors import AlreadyExists, NotFound
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome
from paimon.testing import contracts
from paimon.testing.memory_files import MemoryFiles
from support.contract_mistakes.planting import plant

FILES = contracts.FileIOContract


@plant(FILES, "test_delete_keeps_directories_with_content", "a directory with content stays")
class RecursiveDelete(LocalFiles):
    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete_directory(path) if os.path.isdir(path) else super().delete([path])


@plant(FILES, "test_modified_times_are_epoch_milliseconds", "in milliseconds since 1970-01-01 00:00 UTC")
class TimesInSeconds(LocalFiles):
    def status(self, path: str) -> FileStatus | None:
        return _divide_time(found) if (found := super().status(path)) else None

    def list(self, path: str) -> Sequence[FileStatus]:
        return [_divide_time(found) for found in super().list(path)]


def _divide_time(status: FileStatus) -> FileStatus:
    return evolve(status, modified_millis=status.modified_millis // 1_000)


@plant(FILES, "test_modified_times_are_epoch_milliseconds", "`list` and `status` agree")
class NoTimesInLists(LocalFiles):
    def list(self, path: str) -> Sequence[FileStatus]:
        return [evolve(found, modified_millis=None) for found in super().list(path)]


@plant(FILES, "test_list_and_status", "Bytes; 0 for a directory. `list` and `status` agree.")
class NoSizesInLists(LocalFiles):
    def list(self, path: str) -> Sequence[FileStatus]:
        return [evolve(found, size=0) for found in super().list(path)]


@plant(FILES, "test_put_if_absent_has_one_winner", "of several concurrent callers at most one gets CREATED")
class CheckThenAct(LocalFiles):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        if self.status(path) is not None:
            return PutOutcome.EXISTS
        self.replace(path, data)
        return PutOutcome.CREATED


@plant(FILES, "test_put_if_absent_has_one_winner", "of several concurrent callers at most one gets CREATED")
class CheckThenActInMemory(MemoryFiles):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        if path in self.contents:
            return PutOutcome.EXISTS
        self.contents[path] = data
        return PutOutcome.CREATED


@plant(FILES, "test_put_if_absent", "an existing file never changes")
class OverwritingPut(LocalFiles):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        outcome = super().put_if_absent(path, data)
        self.replace(path, data)
        return outcome


@plant(FILES, "test_put_if_absent", "a repetition returns EXISTS")
class IdempotentPut(LocalFiles):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        super().put_if_absent(path, data)
        return PutOutcome.CREATED


@plant(FILES, "test_long_directories_are_listed_and_deleted", "All entries, however many there are")
class FirstPageOfList(LocalFiles):
    def list(self, path: str) -> Sequence[FileStatus]:
        return super().list(path)[:1_000]


@plant(FILES, "test_long_directories_are_listed_and_deleted", "Any number of paths")
class FirstBatchOfDelete(LocalFiles):
    def delete(self, paths: Sequence[str]) -> None:
        super().delete(paths[:1_000])


@plant(FILES, "test_names_with_a_common_prefix", "Entries whose names begin with a deleted name stay")
class DeleteByPrefix(MemoryFiles):
    def delete(self, paths: Sequence[str]) -> None:
        super().delete([found for found in list(self.contents) if found.startswith(tuple(paths) or "?")])


@plant(FILES, "test_names_with_a_common_prefix", "List the entries of a directory")
class ListByPrefix(MemoryFiles):
    def list(self, path: str) -> Sequence[FileStatus]:
        parent = path.rpartition("/")[0]
        near = [found for found in super().list(parent) if found.path.startswith(path) and found.path != path]
        return sorted([*super().list(path), *near], key=lambda found: found.name)


@plant(FILES, "test_names_with_a_common_prefix", "None if there is nothing at this path.")
class StatusByPrefix(MemoryFiles):
    def status(self, path: str) -> FileStatus | None:
        begins = any(found.startswith(path) for found in self.contents)
        return super().status(path) or (FileStatus(path, 0, True) if begins else None)


@plant(FILES, "test_list_and_status", "in ascending order of their names")
class UnsortedList(LocalFiles):
    def list(self, path: str) -> Sequence[FileStatus]:
        return super().list(path)[::-1]


@plant(FILES, "test_list_and_status", "not those of its subdirectories")
class RecursiveList(LocalFiles):
    def list(self, path: str) -> Sequence[FileStatus]:
        found = super().list(path)
        return [*found, *(below for entry in found if entry.is_directory for below in self.list(entry.path))]


@plant(FILES, "test_list_and_status", "in the form in which the caller gave the directory")
class OtherPathsInLists(LocalFiles):
    def list(self, path: str) -> Sequence[FileStatus]:
        return [evolve(found, path=f"file:{found.path}") for found in super().list(path)]


@plant(FILES, "test_a_reader_sees_the_old_or_the_new_content", "a reader sees the old or the new content")
class ReplaceInTwoSteps(LocalFiles):
    def replace(self, path: str, data: bytes) -> None:
        self.delete([path])
        super().replace(path, data)


@plant(FILES, "test_replace", "Create a file, or replace its content.")
class ReplaceOnce(LocalFiles):
    def replace(self, path: str, data: bytes) -> None:
        if self.status(path) is None:
            super().replace(path, data)


class _VisibleOutput(BufferedOutput):
    def write(self, data: bytes) -> int:
        written = super().write(data)
        self._publish(self._path, self._buffer.getvalue())
        return written


@plant(FILES, "test_created_file_is_visible_at_close", "Nothing is visible at `path` before the file is closed")
class VisibleWhileWritten(MemoryFiles):
    def create(self, path: str) -> OutputFile:
        return _VisibleOutput(path, self.replace)


class _ClosingOutput(BufferedOutput):
    def abort(self) -> None:
        self.close()


@plant(FILES, "test_aborted_file_leaves_nothing", "Discard the file. No file remains")
class AbortThatCloses(MemoryFiles):
    def create(self, path: str) -> OutputFile:
        return _ClosingOutput(path, self.replace)


class _DeletingOutput(LocalOutputFile):
    def abort(self) -> None:
        super().abort()
        if os.path.exists(self._final):
            os.unlink(self._final)


@plant(FILES, "test_an_aborted_file_keeps_the_one", "An older file of the same name stays.")
class AbortThatDeletes(LocalFiles):
    def create(self, path: str) -> OutputFile:
        return _DeletingOutput(path, path)


@plant(FILES, "test_missing_files", "There is no such file.")
class MissingIsEmpty(LocalFiles):
    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        return super().read(path, max_bytes) if self.status(path) else b""


@plant(FILES, "test_missing_files", 'Its fields are `kind` ``"file"`` and `name`, the path.')
class MissingWithoutPath(LocalFiles):
    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        if self.status(path) is None:
            raise NotFound("object", os.path.basename(path))
        return super().read(path, max_bytes)


@plant(FILES, "test_read_has_a_limit", "The file has more than `max_bytes` bytes")
class CutAtTheLimit(LocalFiles):
    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        return super().read(path)[:max_bytes]


@plant(FILES, "test_delete_is_idempotent", "missing files are not an error")
class DeleteOfExistingOnly(LocalFiles):
    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            os.unlink(path)


@plant(FILES, "test_other_failures_are_storage_errors", "Every failure that a method does not list below is a")
class RawErrors(LocalFiles):
    def replace(self, path: str, data: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        super().replace(path, data)


DIRECTORIES = contracts.DirectoriesContract


@plant(DIRECTORIES, "test_a_move_is_one_step", "Rename a directory with all its content in one step.")
class MoveByCopy(LocalFiles):
    def move_directory(self, source: str, target: str) -> None:
        os.makedirs(target)
        for found in self.list(source):
            self.replace(f"{target}/{found.name}", self.read(found.path))
        self.delete_directory(source)


@plant(DIRECTORIES, "test_a_moved_directory_has_its_content", "A reader sees all of it at one of the two places.")
class MoveThatLeavesTheSource(LocalFiles):
    def move_directory(self, source: str, target: str) -> None:
        shutil.copytree(source, target)


@plant(DIRECTORIES, "test_a_refused_move_changes_nothing", "Something exists at the target, also an empty directory")
class MoveOntoEmpty(LocalFiles):
    def move_directory(self, source: str, target: str) -> None:
        if os.path.isdir(target) and not os.listdir(target):
            os.rmdir(target)
        super().move_directory(source, target)


@plant(DIRECTORIES, "test_a_refused_move_changes_nothing", "There is no such source directory.")
class MoveOfNothing(LocalFiles):
    def move_directory(self, source: str, target: str) -> None:
        if self.status(source) is not None:
            super().move_directory(source, target)


@plant(DIRECTORIES, "test_one_of_concurrent_moves_succeeds", "or that of a concurrent call. Nothing changed.")
class MergingMove(LocalFiles):
    def move_directory(self, source: str, target: str) -> None:
        if self.status(target) is not None:
            raise AlreadyExists("directory", target)
        os.makedirs(target, exist_ok=True)
        for found in self.list(source):
            os.rename(found.path, f"{target}/{found.name}")
        os.rmdir(source)


@plant(DIRECTORIES, "test_a_deleted_directory_is_gone", "Delete a directory with all its content.")
class DeleteDirectoriesByPrefix(LocalFiles):
    def delete_directory(self, path: str) -> None:
        for found in self.list(os.path.dirname(path)):
            if found.path.startswith(path):
                shutil.rmtree(found.path) if found.is_directory else os.unlink(found.path)


@plant(DIRECTORIES, "test_a_deleted_directory_is_gone", "The call is idempotent, but not atomic.")
class DeleteDirectoryOnce(LocalFiles):
    def delete_directory(self, path: str) -> None:
        if self.status(path) is None:
            raise NotFound("directory", path)
        super().delete_directory(path)


@plant(
    DIRECTORIES, "test_a_made_directory_exists", "Create a directory with its missing parents. The call is idempotent."
)
class MakeAnew(LocalFiles):
    def make_directory(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)
        super().make_directory(path)


@plant(DIRECTORIES, "test_a_made_directory_exists", "The storage refused, or a file has this name.")
class MakeOverFile(LocalFiles):
    def make_directory(self, path: str) -> None:
        if self.status(path) is None:
            super().make_directory(path)


MANY = contracts.ManyFilesContract


@plant(MANY, "test_all_files_are_created", "Create several files.")
class CreateNothing(LocalFiles):
    def create_all(self, files: Mapping[str, bytes]) -> None: ...


@plant(MANY, "test_an_existing_file_is_replaced", "files of the same names are replaced")
class CreateOnlyMissing(LocalFiles):
    def create_all(self, files: Mapping[str, bytes]) -> None:
        super().create_all({path: data for path, data in files.items() if self.status(path) is None})


@plant(MANY, "test_each_file_is_whole", "Each file becomes visible whole or not at all")
class CreateInPlace(LocalFiles):
    def create_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb", buffering=0) as file:
                file.write(data[:10])
                file.write(data[10:])


DEFERRED = contracts.DeferredFlushContract


@plant(DEFERRED, "test_a_deferred_file_is_a_new_file", "Begin a new file as `create` does")
class ShowDeferredAtOnce(LocalFiles):
    def create_deferred(self, path: str) -> Any:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb", buffering=0)


@plant(DEFERRED, "test_deferred_files_are_flushed_with_new_ones", "Make closed files durable")
class FlushNoDeferred(LocalFiles):
    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        super().flush_and_create((), files)
