"""Telling those who want to know of a commit.

Law: a published commit is never made a failure by whom it is told to. Names in `commit.callbacks` that nobody bound to
a callable refuse the commit before anything is published: whoever set the option relies on the call. A name is never
loaded: it comes from storage. Source: `CommitCallback`, `CallbackUtils`.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Mapping

from attrs import evolve

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.schema.table_definition import TableDefinition
from paimon.ports.callbacks import CommitCallback, CommitEvent
from paimon.ports.engine import Engine

OPTION = "commit.callbacks"


def with_callbacks(engine: Engine, callbacks: Iterable[CommitCallback | Mapping[str, CommitCallback]]) -> Engine:
    """The engine with these callbacks beside those it has; one without a name goes by that of its function."""
    named = dict(engine.callbacks)
    for one in callbacks:
        named |= one if isinstance(one, Mapping) else {_name_of(one): one}
    return evolve(engine, callbacks=named)


def check_callbacks(engine: Engine, table: TableDefinition) -> None:
    """Refuse to commit where the table names callbacks that the engine does not have.

    Raises
    ------
    Unsupported
        Naming them.
    """
    listed = (name.strip() for name in (table.options.get(OPTION) or "").split(","))
    missing = sorted({name for name in listed if name and name not in engine.callbacks})
    if missing:
        raise Unsupported(
            f"{OPTION} of table {table.identifier} without a callable for {', '.join(map(repr, missing))}",
            hint="bind it: table.with_callbacks({name: callable}), or go without: "
            "table.with_options({'commit.callbacks': ''})",
        )


def tell(engine: Engine, event: CommitEvent) -> tuple[str, ...]:
    """Call all callbacks; answers what went wrong, one sentence each, of which a warning was given too."""
    failures: list[str] = []
    for name, callback in engine.callbacks.items():
        try:
            callback(event)
        except Exception as error:  # the caller's own code: the commit stands, whatever it does
            failures.append(_failure(name, event, error))
    for failure in failures:
        engine.observer.count("commit.callback_failed", 1)
        with contextlib.suppress(RuntimeWarning):  # where warnings are errors
            warnings.warn(failure, RuntimeWarning, stacklevel=2)
    return tuple(failures)


def _name_of(callback: CommitCallback) -> str:
    if not callable(callback):
        raise InvalidRequest(f"{callback!r} cannot be called", subject="callbacks", hint="give a function of one event")
    name = getattr(callback, "__qualname__", type(callback).__qualname__)
    named = f"{getattr(callback, '__module__', '')}.{name}"
    return f"{named}@{id(callback):x}" if "<" in name else named


def _failure(name: str, event: CommitEvent, error: Exception) -> str:
    what = f"snapshot {event.snapshot.id}" if event.snapshot else f"commit {event.identifier}"
    return f"{what} of {event.table.identifier} stands, but callback {name!r} failed: {type(error).__name__}: {error}"
