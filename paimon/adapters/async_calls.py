"""Calls of the library in programs with asyncio: they run in threads, and stop with their task.

Invariant: when `run_async` returns or raises, its thread has left the call, so nothing goes on behind the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from paimon.adapters.cancellation import CancelToken
from paimon.domain.errors import InvalidRequest

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


async def run_async(call: Callable[_Given, _Result], /, *arguments: _Given.args, **named: _Given.kwargs) -> _Result:
    """Run a call of the library in a thread. If the task is cancelled, the call stops, as by a `CancelToken`.

    Parameters
    ----------
    call : callable
        A method such as ``orders.scan().to_arrow`` or ``orders.write``.
    *arguments, **named : object
        Its arguments.

    Returns
    -------
    object
        What the call returns.

    Raises
    ------
    asyncio.CancelledError
        The task was cancelled. The call has ended: a commit that had begun is published or refused.
    InvalidRequest
        The call is the ``next`` of an iterator that has ended.

    Examples
    --------
    >>> import asyncio, paimon
    >>> catalog = paimon.connect("memory://run-async")
    >>> asyncio.run(paimon.run_async(catalog.create_database, "shop"))
    >>> asyncio.run(paimon.run_async(catalog.databases))
    ['shop']
    """
    token = CancelToken()

    def run() -> _Result:
        """Call with the token, in a copy of the context of the task."""
        try:
            with token:
                return call(*arguments, **named)
        except StopIteration as end:  # no future can raise it, so the task would wait forever
            hint = "iterate with paimon.iterate_async"
            raise InvalidRequest("The iterator has no more items.", subject="call", hint=hint) from end

    running = asyncio.get_running_loop().run_in_executor(None, copy_context().run, run)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        token.cancel()
        while not running.done():
            with suppress(asyncio.CancelledError):  # some frameworks cancel a task repeatedly
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # seen: asyncio reports no error that nobody asked for
        raise


async def iterate_async(items: Iterable[_Result]) -> AsyncIterator[_Result]:
    """Iterate in threads over what blocks: batches of a scan, or of `Table.follow`. At the end, it is closed.

    Parameters
    ----------
    items : iterable
        Such as ``orders.scan().to_batches()`` or ``orders.follow()``. Nothing else may iterate over it.

    Yields
    ------
    object
        The items, in order.
    """
    iterator, end = iter(items), object()
    try:
        while (item := await run_async(next, iterator, end)) is not end:
            yield item  # type: ignore[misc]
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            await run_async(close)
