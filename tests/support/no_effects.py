"""Fixtures: a test of a pure module that opens a file for writing, a socket or a process fails."""

from __future__ import annotations

import gc
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

_ALLOWED = (str(Path(__file__).resolve().parents[1] / "data"), sys.prefix, sys.base_prefix)
_SPILL = str(Path(tempfile.gettempdir()) / "paimon-")
_watched_thread: int | None = None
_caught: list[str] = []


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    # Other threads, such as those of a Spark session of an earlier test, may do I/O. The domain starts no threads.
    if threading.get_ident() != _watched_thread:
        return
    if event in ("socket.connect", "socket.bind", "subprocess.Popen"):
        if not _is_of_java_object():
            _caught.append(event)
    elif event == "open" and _is_foreign(arguments) and not _is_removal(arguments):
        _caught.append(f"open {arguments[0]}")


def _is_of_java_object() -> bool:
    # The finaliser of a Java object of an earlier Spark test may connect to its JVM, in any thread that collects it.
    frame: FrameType | None = sys._getframe()
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("py4j."):
        frame = frame.f_back
    return frame is not None


def _is_foreign(arguments: tuple[object, ...]) -> bool:
    path = str(arguments[0])
    code = path.endswith((".py", ".pyc", ".so")) or path.startswith("<")  # tracebacks look for sources with these names
    harmless = code or path.startswith(_ALLOWED) or "/.hypothesis" in path
    return not harmless and not isinstance(arguments[0], int) and not path.startswith(("/proc", "/usr", "/etc", "/dev"))


def _is_removal(arguments: tuple[object, ...]) -> bool:
    # The finaliser of a spill directory of an earlier test opens it to delete it. A call of `open` has a mode.
    return arguments[1] is None and str(arguments[0]).startswith(_SPILL)


sys.addaudithook(_watch)


@pytest.fixture(autouse=True, scope="module")
def others_left_nothing() -> None:
    """Collect garbage of earlier tests, so that the removal of their directories is not attributed to the domain."""
    gc.collect()


@pytest.fixture(autouse=True)
def no_effects(others_left_nothing: None) -> Iterator[None]:
    """Arm the hook for the time of the test."""
    global _watched_thread
    _caught.clear()
    _watched_thread = threading.get_ident()
    yield
    _watched_thread = None
    assert not _caught, f"the domain did I/O: {_caught[:3]}"
