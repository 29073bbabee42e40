"""The errors of the library, by what the caller can do about them.

Law: every error carries the thing at fault as fields, not only as text, and its text is one sentence that says what is
wrong, followed by a hint that says what to do; a value of megabytes is cut there. Nothing below the public interface
leaks a bare third-party exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_RESTORE = "restore the file from a copy, or read a snapshot that does not need it"
_TRY_AGAIN = "check the path, its permissions and the space left, and try again"

_LONGEST = 4_000
"""Characters of a message: enough for the difference of two wide schemas."""


def _cut(text: str) -> str:
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()  # half a character could not be printed
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


class PaimonError(Exception):
    """Root of all errors.

    Parameters
    ----------
    message : str
        One sentence naming the file, table, option or value at fault.
    hint : str, optional
        What the caller can do about it.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = _cut(message)
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return _revived, (type(self), self.args, self.__dict__)


class PaimonWarning(UserWarning):
    """Category of the library's warnings about a table: something is allowed, and may not be what was meant."""


class InvalidRequest(PaimonError, ValueError):
    """The call is at fault: an unknown column, a wrong option value, data of the wrong type.

    It is a `ValueError` too, so code that knows only Python's own errors can catch it.
    """

    def __init__(self, message: str, *, subject: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.subject = subject


class NotFound(PaimonError, LookupError):
    """Something that the caller named does not exist. It is a `LookupError` too.

    `kind` is what it is (``"table"``, ``"snapshot"``, ``"file"`` …), `name` its name or path.
    """

    def __init__(self, kind: str, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"{kind} {name!r} does not exist", hint=hint)
        self.kind = kind
        self.name = name


class AlreadyExists(PaimonError):
    """Something of that name exists already; see `NotFound` for the fields."""

    def __init__(self, kind: str, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"{kind} {name!r} already exists", hint=hint)
        self.kind = kind
        self.name = name


class Unsupported(PaimonError):
    """A version, type or feature that this library does not know; it never guesses. `path` is the file that has it."""

    def __init__(self, feature: str, *, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(f"not supported: {feature}{f' in {path}' if path else ''}", hint=hint)
        self.feature = feature
        self.path = path

    def within(self, path: str) -> Unsupported:
        """The same, said of a file."""
        return self if self.path else Unsupported(self.feature, hint=self.hint, path=path)


class CorruptTable(PaimonError):
    """Stored data is at fault: a truncated, mutated or contradicting file."""

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint or _RESTORE)
        self.path = path
        self.reason = reason


class StorageError(PaimonError):
    """The storage refused or failed an operation for a reason of its own (permissions, disk full, network)."""

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint or _TRY_AGAIN)
        self.path = path
        self.reason = reason


class CommitConflict(PaimonError):
    """Another commit contradicts this one: recompute the job from the newest snapshot and commit again."""

    def __init__(self, message: str, *, files: Iterable[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint or "read the newest snapshot, recompute and commit again")
        self.files = tuple(files)


class CommitUncertain(PaimonError):
    """Nobody can say whether the commit took place; nothing was deleted.

    `Table.resolve(error)` finds out, or `paimon outcome`, for which `snapshot_id` and `identity` tell the snapshot that
    it was to become. `request` is what was to be committed.
    """

    def __init__(
        self, commit_user: str, identifier: int, reason: str, *, snapshot_id: int | None = None,
        identity: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            f"the outcome of {_commit_named(identifier)} of user {commit_user!r} is unknown: {reason}",
            hint="ask Table.resolve(error), or paimon outcome --user … --snapshot … --uuid …, before committing the "
            f"same data again{f'; its uuid is {identity}' if identity else ''}",
        )
        self.commit_user = commit_user
        self.identifier = identifier
        self.reason = reason
        self.snapshot_id = snapshot_id
        self.identity = identity
        self.request: object | None = None


class CommitOverwritten(PaimonError):
    """A snapshot that this process published was replaced by another writer's: its rows are not in the table any more.

    Said by the next commit of the process, of which nothing was published. `snapshot_id` is the lost snapshot, of
    `commit_user` under `identifier`; `other_user` wrote what stands now. Its data files are still there:
    `Table.resolve(error)` commits them again. Where `is_this_commit` is true, the rows are those of the very call that
    raised the error (they were replaced before its compaction): resolve it, and do not repeat the call.
    """

    def __init__(
        self, snapshot_id: int, commit_user: str, identifier: int, other_user: str, *, is_this_commit: bool = False
    ) -> None:
        again = "commits this very write again, do not repeat it" if is_this_commit else "commits its files again"
        super().__init__(
            f"snapshot {snapshot_id} of user {commit_user!r} was replaced by one of user {other_user!r}, "
            "and what it brought is not in the table",
            hint=f"Table.resolve(error) {again}; writers that check and then rename, as Java does "
            "without a catalog's lock, need a locking catalog (a rollback by others looks the same)",
        )
        self.snapshot_id = snapshot_id
        self.commit_user = commit_user
        self.identifier = identifier
        self.other_user = other_user
        self.is_this_commit = is_this_commit
        self.request: object | None = None

    def as_this_commit(self) -> CommitOverwritten:
        """Return the same error for the call that made the snapshot: it was replaced before its compaction."""
        error = CommitOverwritten(
            self.snapshot_id, self.commit_user, self.identifier, self.other_user, is_this_commit=True
        )
        error.request = self.request
        return error


class CommitNotVisible(PaimonError):
    """The rows of a commit are in the table, but reads do not show them yet.

    Reads of tables with deletion vectors and of first-row tables skip level 0. The compaction that follows a write
    failed more often than `commit.max-retries` and `commit.timeout` allow. Do not write the rows again.

    Parameters
    ----------
    commit_user : str
        The user of the commit.
    identifier : int
        The commit identifier.
    snapshot_ids : iterable of int
        The snapshots that the commit made.
    reason : PaimonError
        What the last compaction failed with.
    """

    def __init__(
        self, commit_user: str, identifier: int, snapshot_ids: Iterable[int], reason: PaimonError
    ) -> None:
        ids = tuple(snapshot_ids)
        made = f" (snapshot {', '.join(map(str, ids))})" if ids else ""
        super().__init__(
            f"{_commit_named(identifier)} of user {commit_user!r}{made} is committed, but reads do not show its rows "
            f"yet: its compaction failed: {reason.message}",
            hint="call Table.compact() to show the rows; do not write them again",
        )
        self.commit_user = commit_user
        self.identifier = identifier
        self.snapshot_ids = ids
        self.reason = reason


def _commit_named(identifier: int) -> str:
    return "a batch commit" if identifier == 2**63 - 1 else f"commit {identifier}"


def _revived(kind: type[PaimonError], told: tuple[object, ...], fields: dict[str, object]) -> PaimonError:
    """An error that travelled between processes."""
    error = kind.__new__(kind)
    Exception.__init__(error, *told)
    error.__dict__.update(fields)
    return error


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint that names the nearest known name, or lists the known ones; None where nothing is known."""
    name, names = str(name), sorted(known)
    same = [candidate for candidate in names if candidate.lower() == name.lower()]
    near = same or get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}" if names else None
