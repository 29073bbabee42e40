"""The errors of the library, by what the caller can do about them.

Law: every error carries the thing at fault as fields, not only as text, and its text is one sentence that says what is
wrong, followed by a hint that says what to do. Nothing below the public interface leaks a bare third-party exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_RESTORE = "restore the file from a copy, or read a snapshot that does not need it"
_TRY_AGAIN = "check the path, its permissions and the space left, and try again"


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
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.message = message
        self.hint = hint


class InvalidRequest(PaimonError):
    """The call is at fault: an unknown column, a wrong option value, data of the wrong type."""

    def __init__(self, message: str, *, subject: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.subject = subject


class NotFound(PaimonError):
    """Something that the caller named does not exist.

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

    Look for a snapshot of `commit_user` with `identifier` before you commit again.
    """

    def __init__(self, commit_user: str, identifier: int, reason: str) -> None:
        super().__init__(
            f"the outcome of commit {identifier} of user {commit_user!r} is unknown: {reason}",
            hint="look for a snapshot with this user and identifier before committing the same data again",
        )
        self.commit_user = commit_user
        self.identifier = identifier
        self.reason = reason


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint that names the nearest known name, or lists the known ones; None where nothing is known."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}" if names else None
