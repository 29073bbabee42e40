"""Call the commit callbacks of an engine.

Invariant: an error of a callback never makes a published commit a failure. A name in `commit.callbacks` without a
callable on this engine refuses the commit before anything is published. Names come from storage, so no code is loaded
by name.

Source: `CommitCallback`, `CallbackUtils`.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Mapping

from attrs import evolve

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.operations.table_context import TableContext
from paimon.ports.callbacks import CommitCallback, CommitEvent
from paimon.ports.engine import Engine

OPTION = "commit.callbacks"


def with_callbacks(engine: Engine, callbacks: Iterable[CommitCallback | Mapping[str, CommitCallback]]) -> Engine:
    """Return the engine with these callbacks in addition to its own.

    A callable that is not in a mapping is registered under its qualified name.
    """
    named = dict(engine.callbacks)
    for callback in callbacks:
        named |= callback if isinstance(callback, Mapping) else {_derive_name(callback): callback}
    return evolve(engine, callbacks=named)


def check_callbacks(context: TableContext) -> None:
    """Raise Unsupported if the engine lacks a callable for a name in `commit.callbacks`."""
    listed = (name.strip() for name in (context.options.get(OPTION) or "").split(","))
    missing = sorted({name for name in listed if name and name not in context.engine.callbacks})
    if missing:
        names = ", ".join(map(repr, missing))
        raise Unsupported(
            f"option {OPTION!r} of table {context.table.table_name!r} without a callable for {names}",
            hint="register one with table.with_callbacks({name: callable}), or clear the option with "
            "table.with_options({'commit.callbacks': ''})",
        )


def call_callbacks(engine: Engine, event: CommitEvent) -> tuple[str, ...]:
    """Call all callbacks of the engine for one event.

    A callback that raises does not fail the commit: it causes a warning, whose text is returned.
    """
    failures: list[str] = []
    for name, callback in engine.callbacks.items():
        try:
            callback(event)
        except Exception as error:  # code of the caller may raise anything; the commit is published
            failures.append(_format_failure(name, event, error))
    for failure in failures:
        engine.observer.count("commit.callback_failed", 1)
        with contextlib.suppress(RuntimeWarning):  # raised if warnings are errors
            warnings.warn(failure, RuntimeWarning, stacklevel=2)
    return tuple(failures)


def _derive_name(callback: CommitCallback) -> str:
    if not callable(callback):
        raise InvalidRequest(
            f"Callback {callback!r} is not callable", subject="callbacks", hint="pass a function of one event"
        )
    name = getattr(callback, "__qualname__", type(callback).__qualname__)
    named = f"{getattr(callback, '__module__', '')}.{name}"
    return f"{named}@{id(callback):x}" if "<" in name else named


def _format_failure(name: str, event: CommitEvent, error: Exception) -> str:
    what = f"Snapshot {event.snapshot.id}" if event.snapshot else f"Commit {event.identifier}"
    reason = f"{type(error).__name__}: {error}"
    return f"{what} of table {event.table.table_name!r} is committed, but callback {name!r} failed: {reason}"
