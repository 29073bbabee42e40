"""ThreadCommitGroups: a CommitGroups for the threads of this process.

Invariant: a queue has a leader as long as a call waits in it. A member leaves its queue when it is taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from attrs import define, field

from paimon.ports.cancellation import Stopped, check_stop, has_token
from paimon.ports.commit_groups import TakeMembers

T = TypeVar("T")
_SLICE_SECONDS = 0.05
"""How long a wait lasts at most before the next check for a stop."""


class Signal(Protocol):
    """What wakes a call that waits, as `threading.Event` does."""

    def set(self) -> None:
        """End the wait, now and later."""

    def is_set(self) -> bool:
        """Return whether the wait ended."""

    def wait(self, timeout: float | None = None) -> object:
        """Return once the signal is set, or after the timeout in seconds."""


@define(eq=False)
class _Call:
    """A call that waits, leads or was taken; `signal` is set once it leads, or its leader has ended."""

    member: Any
    signal: Signal
    leads: bool = False
    queue: _Queue | None = None
    to_wake: list[_Call] = field(factory=list)


@define(eq=False)
class _Queue:
    """The calls of one key: those that wait in their order, and those that the leader took."""

    leader: _Call
    thread: int
    waiting: list[_Call] = field(factory=list)
    taken: list[_Call] = field(factory=list)


class ThreadCommitGroups:
    """See `paimon.ports.commit_groups.CommitGroups`. `make_signal` makes what a call waits for."""

    # An interrupt may end a call between any two steps, also while it holds the lock. The other calls must not wait
    # for ever then. So the statements are in an order in which `_end` can be repeated after each of them, and it is.

    def __init__(self, make_signal: Callable[[], Signal] = threading.Event) -> None:
        self._make_signal = make_signal
        self._lock = threading.Lock()
        self._queues: dict[str, _Queue] = {}

    def abandon(self, _: Callable[[object], None]) -> None:
        """Forget the calls of the parent process, whose threads a forked child does not have."""
        self._lock, self._queues = threading.Lock(), {}

    def run(self, key: str, member: T, lead: Callable[[TakeMembers[T]], None]) -> None:
        """Lead at once, or wait until this call leads or its member was taken and its leader has ended."""
        call = _Call(member, self._make_signal())
        try:
            try:
                queue = self._enter(key, call)
                if queue is None:  # within the leader, in its thread
                    own = [[member]]
                    lead(lambda limit: own.pop() if own else [])
                    return
                if not call.leads:
                    self._wait(queue, call)
                if call.leads:
                    queue.thread = threading.get_ident()
                    lead(partial(self._take, queue))
            finally:
                self._end(key, call)
        finally:
            self._end(key, call)  # again, if an interrupt ended it

    def _enter(self, key: str, call: _Call) -> _Queue | None:
        """Let a call wait in the queue of its key, or lead; return None for a call within the leader."""
        thread = threading.get_ident()
        with self._lock:
            queue = self._queues.get(key)
            if queue is None:
                queue, call.leads = _Queue(call, thread), True
            elif queue.thread == thread:
                return None
            call.queue = queue
            queue.waiting.append(call)
            self._queues[key] = queue
        return queue

    def _wait(self, queue: _Queue, call: _Call) -> None:
        """Wait for the signal. A stop ends the wait of a call that is neither taken nor leads, an interrupt each."""
        while not call.signal.is_set():
            call.signal.wait(_SLICE_SECONDS if has_token() else None)
            try:
                check_stop()
            except Stopped:
                if self._leave(queue, call):
                    raise

    def _leave(self, queue: _Queue, call: _Call) -> bool:
        """Let a call leave that waits; return False if it was taken, leads, or has left."""
        with self._lock:
            is_waiting = call in queue.waiting and not call.leads
            if is_waiting:
                queue.waiting.remove(call)
        return is_waiting

    def _take(self, queue: _Queue, limit: int) -> Sequence[Any]:
        with self._lock:
            taken = queue.waiting[:limit]
            queue.taken += taken
            queue.waiting = queue.waiting[limit:]
        return [call.member for call in taken]

    def _end(self, key: str, call: _Call) -> None:
        """End a call: wake those that it took as the leader, and let the one lead that waits longest."""
        with self._lock:
            queue = call.queue
            if queue is not None and self._queues.get(key) is queue:  # not of the parent process
                # Also without calls that an interrupted `_take` left: they return, and must not be taken again.
                gone = {call} | set(queue.taken) if queue.leader is call else {call}
                queue.waiting = [waiting for waiting in queue.waiting if waiting not in gone]
                if queue.leader is call:
                    self._end_lead(key, call, queue)
        for woken in call.to_wake:
            woken.signal.set()

    def _end_lead(self, key: str, call: _Call, queue: _Queue) -> None:
        call.to_wake += queue.taken
        queue.taken = []
        if queue.waiting:
            following = queue.waiting[0]
            call.to_wake.append(following)
            following.leads, queue.thread = True, 0
            queue.leader = following
        else:
            del self._queues[key]
