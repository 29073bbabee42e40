"""Stop long calls: what operations and adapters ask between two steps, and where they must not be stopped.

Invariant: a stop is raised at a check and nowhere else; never while a block is shielded, or cleans up.
"""

# A caller of the library bounds the calls of a block, not one call:
#
#     with paimon.deadline(seconds=5):          the token is active in this context, and in the tasks of its executors
#         orders.write(rows)
#           files.read(…)                       check_stop(): raises Stopped once the token is stopped
#           with shielded(): put the snapshot   no check: an attempt to commit that has begun ends
#         orders.tags.create("a")               finished_once_begun(): after its first change, no check stops it
#           files.delete(…)                     no check: deletions clean up
#     -> paimon.DeadlineExceeded                the end of the block translates Stopped
#
# Stopped is no Exception, as asyncio.CancelledError is none. Otherwise code that reports or repairs what raises an
# error (`fsck`, maintenance, retries, clients of storages) would take a stop for a fault of a file. Code that undoes
# what it began catches BaseException anyway. It may read files, so no check raises while Stopped is handled.

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Protocol

from paimon.domain.errors import Cancelled


class StopToken(Protocol):
    """What stops the calls of a block."""

    def is_stopped(self) -> bool:
        """Return whether the calls are to stop.

        Returns
        -------
        bool
            Once True, it stays True. The call is quick and safe in several threads.
        """


class _Call:
    """A call that ends once it has changed the storage; its threads share the object."""

    has_begun = False


_tokens: ContextVar[tuple[StopToken, ...]] = ContextVar("paimon_stop_tokens", default=())
_calls: ContextVar[tuple[_Call, ...]] = ContextVar("paimon_whole_calls", default=())


class Stopped(BaseException):
    """Raised by a check in a block whose token is stopped; the end of the block translates it.

    Parameters
    ----------
    token : StopToken
        The token that is stopped.

    Attributes
    ----------
    token : StopToken
        The parameter.
    """

    def __init__(self, token: StopToken) -> None:
        super().__init__("stopped by a token of paimon")
        self.token = token


def check_stop() -> None:
    """Check whether the caller wants to stop; executors, storages and loops over batches call it.

    Raises
    ------
    Stopped
        A token of this context is stopped, and no block shields or cleans up.
    """
    token = find_stopped()
    if token is not None and not _is_cleaning_up():
        raise Stopped(token)


def find_stopped() -> StopToken | None:
    """Return the outermost token of this context that is stopped.

    Returns
    -------
    StopToken or None
        None if no token is stopped.
    """
    if any(call.has_begun for call in _calls.get()):
        return None
    return next((token for token in _tokens.get() if token.is_stopped()), None)


def has_token() -> bool:
    """Return whether a token is active in this context.

    Returns
    -------
    bool
        False in a shielded block.
    """
    return bool(_tokens.get())


def activate_token(token: StopToken) -> None:
    """Let a token stop the next calls in this context, as the tokens that are active already.

    Parameters
    ----------
    token : StopToken
        The token.
    """
    _tokens.set((*_tokens.get(), token))


def deactivate_token(token: StopToken) -> None:
    """Take back one `activate_token`.

    Parameters
    ----------
    token : StopToken
        The token.
    """
    tokens = list(_tokens.get())
    if token in tokens:
        tokens.reverse()
        tokens.remove(token)
        _tokens.set(tuple(reversed(tokens)))


@contextmanager
def shielded() -> Iterator[None]:
    """Let no token stop the calls of a block.

    Yields
    ------
    None
        Nothing.
    """
    begin_change()
    reset = _tokens.set(())
    try:
        yield
    finally:
        _tokens.reset(reset)


@contextmanager
def finished_once_begun() -> Iterator[None]:
    """Let a token stop the calls of a block before its first change, and none after it.

    Yields
    ------
    None
        Nothing.
    """
    reset = _calls.set((*_calls.get(), _Call()))
    try:
        yield
    finally:
        _calls.reset(reset)


def begin_change() -> None:
    """Note that the storage is about to change, in the blocks of `finished_once_begun` around this call."""
    for call in _calls.get():
        call.has_begun = True


def copy_task_context() -> Context:
    """Return the context in which a thread of an executor runs a task: with the tokens of the caller.

    Returns
    -------
    contextvars.Context
        A new one for each task. It has no token if the caller cleans up.
    """
    context = copy_context()
    if _tokens.get() and _is_cleaning_up():
        context.run(_tokens.set, ())
    return context


def _is_cleaning_up() -> bool:
    """Return whether this thread handles a stop, an interrupt, or the end of a generator; a block that ended is not."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, Cancelled) and isinstance(error.__context__, Stopped):
            error = error.__context__
        elif not isinstance(error, Exception):
            return True
        error = error.__context__
    return False
