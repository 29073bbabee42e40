"""The errors that users of the library see, divided by what the caller can do about them.

Invariant: every error carries the object at fault as fields, not only as text. The text says what is wrong, followed
by a hint that says what to do; very long values are cut. No third-party exception leaves the public interface bare.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_RESTORE = "restore the file from a backup, or roll back to a snapshot that does not reference it"
_TRY_AGAIN = "check the path, its permissions and the free space, then try again"

_MAX_CHARACTERS = 4_000
"""Characters of a message: enough for the difference of two wide schemas."""


def _shorten_message(text: str) -> str:
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()  # an unpaired surrogate could not be printed
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS // 2]} … {text[-_MAX_CHARACTERS // 2 :]}"


def _join_sentences(message: str, hint: str | None) -> str:
    """Write a message and its hint as sentences."""
    if hint is None:
        return message
    first_word = hint.partition(" ")[0].rstrip(",:")
    # An option, a call or a path at the start of a hint keeps its spelling.
    sentence = capitalize(hint) if first_word.isalpha() else hint
    gap = "" if message.endswith("\n") else " "
    return _end_sentence(message) + gap + _end_sentence(sentence)


def capitalize(text: str) -> str:
    """Return a text with a capital first letter; its other letters do not change."""
    return text[:1].upper() + text[1:]


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", "\n")) else text + "."


class PaimonError(Exception):
    """Root of all errors: catch it to handle every error of this library.

    It is never raised itself, only its subclasses. ``str(error)`` is the message followed by the hint.

    Parameters
    ----------
    message : str
        One sentence that names the file, table, option or value at fault. It is cut to about 4,000 characters.
    hint : str, optional
        What the caller can do about it. It may begin with a small letter and needs no full stop.

    Attributes
    ----------
    message : str
        The sentence without the hint.
    hint : str or None
        The hint as it was given; None where the error has none.

    Examples
    --------
    >>> error = InvalidRequest("Option 'bucket' is 0", subject="bucket", hint="give a number above 0")
    >>> print(error)
    Option 'bucket' is 0. Give a number above 0.
    >>> error.message, error.hint
    ("Option 'bucket' is 0", 'give a number above 0')
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = _shorten_message(message)
        super().__init__(_join_sentences(message, hint))
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_error, (type(self), self.args, self.__dict__)


class PaimonWarning(UserWarning):
    """Category of the library's warnings about a table: something is allowed, but it may not be what you intended.

    Silence or escalate it with the `warnings` module, for example ``warnings.simplefilter("error", PaimonWarning)``.
    """


class InvalidRequest(PaimonError, ValueError):
    """Raised when the call is at fault: an unknown column, a wrong option value, data of the wrong type.

    Fix the call; nothing was written. It is a `ValueError` too, so code that knows only Python's own errors can catch
    it.

    Attributes
    ----------
    subject : str or None
        The column, option or value at fault.
    message, hint : str or None
        See `PaimonError`.

    Examples
    --------
    >>> try:
    ...     raise InvalidRequest("Column 'prise' does not exist", subject="prise", hint="did you mean 'price'?")
    ... except ValueError as error:
    ...     print(error)
    Column 'prise' does not exist. Did you mean 'price'?
    """

    def __init__(self, message: str, *, subject: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.subject = subject


class RowIdNotFound(InvalidRequest):
    """Raised when no row of a table has an id by which a row is to be changed; nothing was written."""


class AmbiguousMerge(InvalidRequest):
    """Raised when several rows of the source of a merge match one row of the table; nothing was written."""


class NotFound(PaimonError, LookupError):
    """Raised when an object that the caller named does not exist.

    Check the name, or create the object first. It is a `LookupError` too.

    Attributes
    ----------
    kind : str
        What the object is: ``"table"``, ``"database"``, ``"snapshot"``, ``"tag"``, ``"file"``, ….
    name : str
        Its name, number or path.
    message, hint : str or None
        See `PaimonError`.

    Examples
    --------
    >>> error = NotFound("tag", "2026-01")
    >>> print(error)
    Tag '2026-01' does not exist
    >>> error.kind, error.name
    ('tag', '2026-01')
    """

    def __init__(self, kind: str, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"{capitalize(kind)} {name!r} does not exist", hint=hint)
        self.kind = kind
        self.name = name


class TableDropped(NotFound):
    """Raised when an open table does not exist any more, because another process dropped or renamed it.

    Nothing was acknowledged. Open the table again, under its new name if it was renamed.

    Attributes
    ----------
    kind, name : str
        ``"table"``, and the directory or URL of the table.
    snapshot_id : int or None
        A snapshot that this commit published just before, and that is gone from this directory. The table contains it
        if it was renamed at that moment. None if nothing was published.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, location: str, snapshot_id: int | None = None) -> None:
        there = "" if snapshot_id is None else f", and look there for snapshot {snapshot_id} of this commit"
        PaimonError.__init__(
            self,
            f"Table {location!r} does not exist any more: it was dropped or renamed after it was opened",
            hint=f"if it was renamed, open it under its new name{there}",
        )
        self.kind, self.name, self.snapshot_id = "table", location, snapshot_id


class TableReplaced(NotFound):
    """Raised when an open table was dropped, and another table was created at the same place.

    No row was read or acknowledged. Open the new table, and repeat the call.

    Attributes
    ----------
    kind, name : str
        ``"table"``, and the directory or URL of the table.
    snapshot_id : int or None
        A snapshot of this commit that is still in the new table, because other commits or tags use it already. None if
        nothing is left there.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, location: str, snapshot_id: int | None = None) -> None:
        left = "" if snapshot_id is None else f"; its snapshot {snapshot_id} is of this refused commit"
        PaimonError.__init__(
            self,
            f"Table {location!r} was dropped and created again after it was opened{left}",
            hint="open the new table and repeat the call"
            if snapshot_id is None
            else f"roll the new table back to the snapshot before {snapshot_id}",
        )
        self.kind, self.name, self.snapshot_id = "table", location, snapshot_id


class AlreadyExists(PaimonError):
    """Raised when an object of this name exists already, so that it cannot be created.

    Use another name, or pass ``exist_ok=True`` where the call has this parameter.

    Attributes
    ----------
    kind : str
        What the object is: ``"table"``, ``"column"``, ``"branch"``, ….
    name : str
        Its name.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, kind: str, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"{capitalize(kind)} {name!r} already exists", hint=hint)
        self.kind = kind
        self.name = name


class Unsupported(PaimonError):
    """Raised for a version, type, option or feature that this library does not know: it never guesses.

    Change the option or type that the message names, or use another client for this table.

    Attributes
    ----------
    feature : str
        What is not supported.
    path : str or None
        The file that needs it; None where no single file does.
    message, hint : str or None
        See `PaimonError`.

    Examples
    --------
    >>> print(Unsupported("type GEOMETRY", path="schema/schema-3"))
    Not supported: type GEOMETRY in schema/schema-3
    """

    def __init__(self, feature: str, *, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(f"Not supported: {feature}{f' in {path}' if path else ''}", hint=hint)
        self.feature = feature
        self.path = path

    def within(self, path: str) -> Unsupported:
        """Return the same error with a file that needs the feature; an error that names a file stays as it is."""
        return self if self.path else Unsupported(self.feature, hint=self.hint, path=path)


class CorruptTable(PaimonError):
    """Raised when stored data is at fault: a truncated, changed or contradicting file.

    Restore the file from a backup, or roll back to a snapshot that does not reference it. Trying again does not help.

    Attributes
    ----------
    path : str
        The file at fault.
    reason : str
        What is wrong with it.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint or _RESTORE)
        self.path = path
        self.reason = reason


class StorageError(PaimonError):
    """Raised when the storage refuses or fails an operation: permissions, a full disk, the network.

    Check the path, its permissions and the free space, then repeat the call. The table is unchanged or complete: a
    failed write publishes no snapshot.

    Attributes
    ----------
    path : str
        The file or directory of the operation.
    reason : str
        What the storage reported.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint or _TRY_AGAIN)
        self.path = path
        self.reason = reason


class CommitConflict(PaimonError):
    """Raised when another commit contradicts this one, for example by compacting a file that this one deletes rows of.

    Nothing was published. Read the newest snapshot, recompute the rows and commit again.

    Attributes
    ----------
    files : tuple of str
        The data files in conflict; empty where the conflict is not about single files.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, message: str, *, files: Iterable[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint or "read the newest snapshot, recompute and commit again")
        self.files = tuple(files)


class HashIndexConflict(CommitConflict):
    """Raised when another commit changed the hash index by which rows were assigned to dynamic buckets.

    Nothing was published. Write the rows again, so that they are assigned to the present buckets.
    """


class KeyIndexConflict(CommitConflict):
    """Raised when another commit may have put keys of a cross-partition table where the writer does not know them.

    Nothing was published. Write the rows again with a new writer, which reads where the keys are.
    """


class ReadConflict(CommitConflict):
    """Raised when another commit changed rows after the snapshot from which a change was computed.

    Nothing was published. Compute the change again from the newest snapshot.
    """


class BucketCountConflict(CommitConflict):
    """Raised when a commit adds files for another number of buckets than their partition has.

    Nothing was published. Open the table again, and write the rows again.
    """


class RowUpdateConflict(CommitConflict):
    """Raised when another commit changed rows from which a change by row id was computed.

    Nothing was published. Read the rows again, and repeat the change.
    """


class DeletionVectorConflict(CommitConflict):
    """Raised when another commit changed the deletion vectors of the same files.

    Nothing was published. Find the rows again, and repeat the change.
    """


class SnapshotExpired(CommitConflict):
    """Raised when the snapshot that is read, or from which a change is computed, expired or was rolled back.

    Nothing was published, and no file is left behind. Plan the scan again, or compute the change again from the newest
    snapshot.
    """


class CommitUncertain(PaimonError):
    """Raised when it is unknown whether a commit took place, for example because the storage did not reply.

    Nothing was deleted. Call ``Table.resolve(error)``, or run ``paimon outcome``, before you commit the same data
    again.

    Attributes
    ----------
    commit_user : str
        The user of the commit.
    identifier : int
        The commit identifier.
    reason : str
        Why the outcome is unknown.
    snapshot_id : int or None
        The id of the snapshot that the commit would become.
    identity : str or None
        The uuid of that snapshot, by which it is recognized.
    request : object or None
        What was to be committed; ``Table.resolve`` uses it.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(
        self,
        commit_user: str,
        identifier: int,
        reason: str,
        *,
        snapshot_id: int | None = None,
        identity: str | None = None,
    ) -> None:
        super().__init__(
            f"The outcome of {_describe_commit(identifier)} of user {commit_user!r} is unknown: {reason}",
            hint="call Table.resolve(error), or run paimon outcome --user … --snapshot … --uuid …, before you commit "
            f"the same data again{f'; its uuid is {identity}' if identity else ''}",
        )
        self.commit_user = commit_user
        self.identifier = identifier
        self.reason = reason
        self.snapshot_id = snapshot_id
        self.identity = identity
        self.request: object | None = None


class CommitOverwritten(PaimonError):
    """Raised when another writer replaced a snapshot of this process, whose rows are not in the table any more.

    The next commit of the process raises it and publishes nothing. The data files still exist, and
    ``Table.resolve(error)`` commits them again.

    Attributes
    ----------
    snapshot_id : int
        The id of the replaced snapshot.
    commit_user, identifier : str, int
        The user and the commit identifier of the replaced commit.
    other_user : str
        The user of the snapshot that replaced it.
    is_this_commit : bool
        True where the rows are those of the very call that raised the error, replaced before its compaction. Resolve
        the error in this case, and do not repeat the call.
    published_id : int or None
        The snapshot that the call has made for its own rows before it found the replaced one; do not repeat the call.
    request : object or None
        What was to be committed; ``Table.resolve`` uses it.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(
        self, snapshot_id: int, commit_user: str, identifier: int, other_user: str, *, is_this_commit: bool = False
    ) -> None:
        again = "commit this write again; do not repeat the call" if is_this_commit else "commit its files again"
        super().__init__(
            f"Snapshot {snapshot_id} of user {commit_user!r} was replaced by one of user {other_user!r}, "
            "so its rows are not in the table",
            hint=f"call Table.resolve(error) to {again}. Java without a catalog's lock checks and then renames: use a "
            "catalog with a lock. A rollback by another client has the same effect",
        )
        self.snapshot_id = snapshot_id
        self.commit_user = commit_user
        self.identifier = identifier
        self.other_user = other_user
        self.is_this_commit = is_this_commit
        self.published_id: int | None = None
        self.request: object | None = None

    def as_this_commit(self) -> CommitOverwritten:
        """Return the same error for the call that made the snapshot: it was replaced before its compaction."""
        error = CommitOverwritten(
            self.snapshot_id, self.commit_user, self.identifier, self.other_user, is_this_commit=True
        )
        error.request = self.request
        return error


class CommitNotVisible(PaimonError):
    """Raised when the rows of a commit are in the table, but reads do not return them yet.

    Reads of tables with deletion vectors and of first-row tables skip level 0. The compaction that follows a write
    failed more often than `commit.max-retries` and `commit.timeout` allow. Call ``Table.compact()``; do not write the
    rows again.

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

    Attributes
    ----------
    commit_user, identifier, snapshot_ids, reason : str, int, tuple of int, PaimonError
        The parameters.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, commit_user: str, identifier: int, snapshot_ids: Iterable[int], reason: PaimonError) -> None:
        ids = tuple(snapshot_ids)
        made = f" (snapshot {', '.join(map(str, ids))})" if ids else ""
        super().__init__(
            f"{capitalize(_describe_commit(identifier))} of user {commit_user!r}{made} is committed, but reads do not "
            f"return its rows yet, because its compaction failed: {reason.message}",
            hint="call Table.compact() to make the rows visible; do not write them again",
        )
        self.commit_user = commit_user
        self.identifier = identifier
        self.snapshot_ids = ids
        self.reason = reason


class Cancelled(PaimonError):
    """Raised at the end of a block whose `CancelToken` was cancelled while a call of the library ran in it.

    The table is whole. A commit of the call is not published, and what was prepared for it is deleted. What the call
    did before remains: of several commits those that were published, of an expiry the snapshots that are deleted.

    Attributes
    ----------
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, message: str = "The call was cancelled") -> None:
        super().__init__(message, hint="the table is whole; repeat the call to do its work")


class DeadlineExceeded(Cancelled):
    """Raised at the end of a block whose `deadline` passed while a call of the library ran in it.

    See `Cancelled` for what the call leaves behind.

    Attributes
    ----------
    seconds : float
        The time that the block had.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The call took longer than its deadline of {seconds:g} s")
        self.seconds = seconds


def _describe_commit(identifier: int) -> str:
    return "a batch commit" if identifier == 2**63 - 1 else f"commit {identifier}"


def _restore_error(kind: type[PaimonError], args: tuple[object, ...], fields: dict[str, object]) -> PaimonError:
    """Build an error again after it was pickled, without calling its constructor."""
    error = kind.__new__(kind)
    Exception.__init__(error, *args)
    error.__dict__.update(fields)
    return error


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return a hint that names the nearest known name, or lists the known ones (at most 20).

    >>> did_you_mean("prise", ["id", "price"])
    "did you mean 'price'?"
    >>> did_you_mean("x", ["id", "price"])
    'known are: id, price'
    """
    name, names = str(name), sorted(known)
    same = [candidate for candidate in names if candidate.lower() == name.lower()]
    near = same or get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}" if names else None


def suggest_or(name: str, known: Iterable[str], otherwise: str | None) -> str | None:
    """Return a hint that names the nearest known name if one is similar, or else another hint.

    >>> suggest_or("prise", ["id", "price"], "see the list"), suggest_or("x", ["id", "price"], "see the list")
    ("did you mean 'price'?", 'see the list')
    """
    hint = did_you_mean(name, known) or ""
    return hint if hint.startswith("did") else otherwise
