"""Change settings of the whole process: Arrow's allocator, the cycle collector, free memory, environment variables.

This is the only module of the library that does so. ``PAIMON_PROCESS_EFFECTS=off`` disables all of it, and
`docs/reference/environment.md` lists it. Importing this module loads no library.

Invariant: a choice of the user takes precedence: an environment variable that is set, a memory pool that is not Arrow's
own choice, a collector that is disabled. Source: docs/decisions/arrow-memory.md.
"""

from __future__ import annotations

import gc
import glob
import os
import sys
from _thread import allocate_lock  # `threading` loads slowly, and each program imports this module
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    import pyarrow as pa

SWITCH = "PAIMON_PROCESS_EFFECTS"
_OFF = frozenset({"off", "0", "false", "no"})

_ALLOCATOR_SETTINGS = "JE_ARROW_MALLOC_CONF"
"""Arrow's jemalloc reads this variable once, when Arrow is loaded."""
_SETTINGS = "thp:always,narenas:1"
_POOL_CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
_ARROWS_OWN_POOL = "mimalloc"
_PREFERRED_POOL = "jemalloc"
_DECAY_MILLIS = 200
"""How long jemalloc keeps free memory if each thread has an arena of its own; Arrow sets a second."""


def has_process_effects() -> bool:
    """Return whether process settings may change; reads the environment each time, as a program may set it."""
    return os.environ.get(SWITCH, "").strip().lower() not in _OFF


def set_environment(name: str, value: str) -> None:
    """Set an environment variable of this process and of the processes that it starts, unless effects are disabled."""
    if has_process_effects():
        os.environ[name] = value


def prepare_allocator() -> None:
    """Let Arrow use jemalloc for all its buffers, with huge pages and one arena; no change if Arrow is already loaded.

    Huge pages save a fifth of the CPU time of a scan. Threads that share an arena reuse the memory that others freed.
    The Parquet reader and writer keep the pool that the process began with, which `choose_memory_pool` cannot change.
    """
    if "pyarrow" in sys.modules:
        return
    if _ALLOCATOR_SETTINGS not in os.environ:
        set_environment(_ALLOCATOR_SETTINGS, _SETTINGS)
    if _POOL_CHOICE not in os.environ and _has_glibc():
        set_environment(_POOL_CHOICE, _PREFERRED_POOL)


def _has_glibc() -> bool:
    """Return whether the C library is glibc: pyarrow has jemalloc there, and warns of a pool that it lacks."""
    try:
        return sys.platform == "linux" and bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (OSError, ValueError):
        return False


def load_arrow_without_threads() -> bool:
    """Load Arrow without the thread of its jemalloc, and return whether this process has one thread, so may fork.

    Returns False without a change if effects are disabled or Arrow was loaded before. The same applies if the user
    chose settings of jemalloc, or the system does not list threads.
    """
    threads = "/proc/self/task"
    settings = os.environ.get(_ALLOCATOR_SETTINGS, _SETTINGS)
    if not has_process_effects() or "pyarrow" in sys.modules or settings != _SETTINGS or not os.path.isdir(threads):
        return False
    os.environ[_ALLOCATOR_SETTINGS] = f"{_SETTINGS},background_thread:false"
    import pyarrow.parquet  # noqa: F401

    return len(os.listdir(threads)) == 1


def choose_memory_pool() -> None:
    """Let Arrow use jemalloc, or the system allocator if Arrow was built without jemalloc.

    Arrow's own choice, mimalloc, keeps the memory that a merge returns, and numpy cannot use this memory. A scan needed
    a third more memory and up to twice the time. The call is idempotent.
    """
    import pyarrow as pa

    arrows_own = pa.default_memory_pool()
    if not has_process_effects() or _POOL_CHOICE in os.environ or arrows_own.backend_name != _ARROWS_OWN_POOL:
        return
    _withhold_huge_pages(arrows_own)
    _find_collector()
    if _PREFERRED_POOL not in pa.supported_memory_backends():
        pa.set_memory_pool(pa.system_memory_pool())
        return
    if _ALLOCATOR_SETTINGS not in os.environ:
        pa.jemalloc_set_decay_ms(_DECAY_MILLIS)
    pa.set_memory_pool(pa.jemalloc_memory_pool())


def _withhold_huge_pages(pool: pa.MemoryPool) -> None:
    """Let Linux use small pages for mimalloc's reserved memory: each thread's sizes would take huge pages."""
    import mmap

    import pyarrow as pa

    advise, advice = _find_in_c_library("madvise"), getattr(mmap, "MADV_NOHUGEPAGE", None)
    if advise is None or advice is None:
        return
    import ctypes

    inside = pa.allocate_buffer(1, memory_pool=pool)
    for begin, end in _list_mappings():
        if begin <= inside.address < end:
            advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice)


class _Collector:
    """`mi_collect` of the mimalloc in Arrow's library, if Arrow's Parquet files use that pool."""

    function: Callable[[bool], None] | None = None


def _find_collector() -> None:
    """Find the function that returns the free memory of a thread; pyarrow has no call for it."""
    import ctypes

    import pyarrow as pa

    with suppress(OSError, AttributeError, StopIteration):
        # Not `pa.get_library_dirs()`, which starts pkg-config.
        path = next(glob.iglob(f"{os.path.dirname(pa.lib.__file__)}/libarrow.so*"))
        found = ctypes.CDLL(path).arrow_mi_collect
        found.argtypes, found.restype = [ctypes.c_bool], None
        _Collector.function = found


def _list_mappings() -> list[tuple[int, int]]:
    """Return the first address of each mapping of memory in this process, and the address after its last."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            ranges = [line.split(maxsplit=1)[0].split("-") for line in maps]
    except OSError:
        return []
    return [(int(begin, 16), int(end, 16)) for begin, end in ranges]


def release_free_memory() -> None:
    """Return the free memory of the C allocator and of Arrow's pool to the operating system, where they can.

    The C allocator keeps freed memory below any memory in use. After a cache of many small values was cleared, 84 of 90
    MiB stayed with the process (glibc 2.36) until it was asked to trim.
    """
    if not has_process_effects():
        return
    import pyarrow as pa

    trim = _find_in_c_library("malloc_trim")
    if trim is not None:
        trim(0)
    pa.default_memory_pool().release_unused()


@cache
def _find_in_c_library(name: str) -> Any | None:
    """Return a function of the C library. None if it has none (`malloc_trim` in musl, macOS, Windows)."""
    import ctypes

    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None


class _FrozenObjects:
    """How many modules were loaded when objects were frozen for the last time."""

    modules = 0


def freeze_objects() -> None:
    """Collect reference cycles, and exempt all objects that remain from later collections.

    Spark collects cycles in a Python process after each task, which takes 50 ms with the modules of this library. A
    process therefore calls this function at the end of a task. It only has an effect if modules were loaded since its
    last call, and if the collector is enabled.
    """
    if has_process_effects() and gc.isenabled() and len(sys.modules) > _FrozenObjects.modules:
        _FrozenObjects.modules = len(sys.modules)
        gc.collect()
        gc.freeze()


def load_module(name: str) -> ModuleType:
    """Return a module. It is loaded without collections, and all objects then move to the oldest generation.

    The classes of a module live as long as the process: collections while they are created took a tenth of the CPU
    time of a process that reads one row. Young garbage is collected first: in the oldest generation it could remain for
    long. No objects move if the collector is disabled, or if a program has frozen objects: they stay frozen.
    """
    if name in sys.modules:
        return import_module(name)
    is_movable = has_process_effects() and gc.isenabled() and not gc.get_freeze_count()
    if is_movable:
        gc.collect(1)
    with _pause_gc():
        module = import_module(name)
        if is_movable and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
    return module


class Inherited(Protocol):
    """An object whose threads, locks or files do not work in a forked child."""

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget what the parent process has, in a child; `keep_for_ever` prevents that an object is closed there."""


_inherited: WeakSet[Inherited] = WeakSet()


def abandon_in_children(*objects: Inherited) -> None:
    """Let forked children abandon what these objects have in this process, as long as they exist."""
    _inherited.update(objects)


def _abandon_inherited() -> None:
    for inherited in list(_inherited):
        inherited.abandon(_keep_for_ever)


def _keep_for_ever(inherited: object) -> None:
    import ctypes  # it loads slowly, and few programs fork

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_inherited)


class _GcPauses:
    """The number of blocks in all threads during which the cycle collector is paused."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._depth = 0
        self._was_enabled = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def begin(self) -> None:
        """Begin a pause, and disable the collector at the first one."""
        with self._lock:
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def end(self) -> None:
        """End a pause, and enable the collector after the last one if it ran before."""
        with self._lock:
            self._depth = max(0, self._depth - 1)
            if self._depth == 0 and self._was_enabled:
                gc.enable()

    def _reset(self) -> None:
        """End all pauses in a forked child: the threads that began them do not exist there."""
        self._lock = allocate_lock()
        if self._depth and self._was_enabled:
            gc.enable()
        self._depth = 0


_gc_pauses = _GcPauses()


class SystemProcessEffects:
    """See `paimon.ports.effects.ProcessEffects`. All instances share the state of the process."""

    def pause_gc(self) -> AbstractContextManager[None]:
        """Pause the cycle collector of all threads, if effects are enabled; nested pauses are counted."""
        return _pause_gc()

    def release_thread_memory(self) -> None:
        """Return the free memory of this thread in mimalloc, which Arrow uses if it was loaded before the library."""
        if _Collector.function is not None and has_process_effects():
            _Collector.function(True)


@contextmanager
def _pause_gc() -> Iterator[None]:
    if not has_process_effects():
        yield
        return
    _gc_pauses.begin()
    try:
        yield
    finally:
        _gc_pauses.end()
