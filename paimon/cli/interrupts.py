"""Let Ctrl-C stop a SQL query that runs in a native library, which looks at signals rarely.

Invariant: outside of the block nothing of the process has changed.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGINT = bytes([signal.SIGINT])
_END = b"\0"
"""No signal has this number."""


@contextmanager
def call_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in another thread as soon as the signal of Ctrl-C arrives; Python raises KeyboardInterrupt, too.

    `stop` ends what the block runs. The signal is watched in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watched, signalled = socket.socketpair()
    with watched, signalled:
        signalled.setblocking(False)
        watcher = threading.Thread(target=_watch, args=(watched, stop), daemon=True)
        watcher.start()
        before = signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            signalled.send(_END)
            watcher.join()


def _watch(watched: socket.socket, stop: Callable[[], None]) -> None:
    """Read the numbers of signals, until the block ends."""
    while True:
        received = watched.recv(4096)
        if _SIGINT in received:
            stop()
        if not received or _END in received:
            return
