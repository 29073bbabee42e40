"""Settings of the whole process: pauses of the cycle collector, and the variable that turns all effects off."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from paimon.adapters import process_effects
from paimon.adapters.process_effects import (
    SWITCH,
    SystemProcessEffects,
    freeze_objects,
    load_module,
    set_environment,
)
from paimon.ports.effects import NoProcessEffects, ProcessEffects

EFFECTS: ProcessEffects = SystemProcessEffects()


@pytest.fixture
def collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if was_enabled:
        gc.enable()
    else:
        gc.disable()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(collector: None, enabled: bool) -> None:
    if not enabled:
        gc.disable()
    with pytest.raises(KeyError), EFFECTS.pause_gc():
        assert not gc.isenabled()
        with EFFECTS.pause_gc():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled() == enabled


def test_pauses_of_two_threads_overlap(collector: None) -> None:
    """The thread that began first ends first, and does not end the pause of the other one."""
    has_begun, may_end = threading.Event(), threading.Event()

    def pause() -> None:
        with EFFECTS.pause_gc():
            has_begun.set()
            may_end.wait(30)

    other = threading.Thread(target=pause)
    with EFFECTS.pause_gc():
        other.start()
        assert has_begun.wait(30)
    assert not gc.isenabled()
    may_end.set()
    other.join(30)
    assert gc.isenabled()


def test_many_threads_leave_the_collector_enabled(collector: None) -> None:
    seen: list[bool] = []
    start = threading.Barrier(8)

    def pause() -> None:
        start.wait(30)
        for _ in range(500):
            with EFFECTS.pause_gc(), SystemProcessEffects().pause_gc():
                seen.append(gc.isenabled())

    threads = [threading.Thread(target=pause) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == 8 * 500 and not any(seen)
    assert gc.isenabled()


def _report_collector(out: Connection) -> None:
    states = [gc.isenabled()]
    with EFFECTS.pause_gc():
        states.append(gc.isenabled())
    out.send([*states, gc.isenabled()])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_forked_process_does_not_inherit_a_pause(collector: None) -> None:
    here, there = multiprocessing.get_context("fork").Pipe()
    with EFFECTS.pause_gc():
        child = multiprocessing.get_context("fork").Process(target=_report_collector, args=(there,))
        child.start()
        child.join(30)
    assert here.poll(0) and here.recv() == [True, False, True]
    assert gc.isenabled()


@pytest.mark.parametrize("value", ["off", "OFF", "0", "false", "no"])
def test_one_variable_turns_the_effects_off(collector: None, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    def fail(name: str) -> None:
        raise AssertionError(f"the allocator was called: {name}")

    monkeypatch.setenv(SWITCH, value)
    monkeypatch.delenv("PAIMON_TEST_VARIABLE", raising=False)
    monkeypatch.setattr(process_effects, "_find_in_c_library", fail)
    with EFFECTS.pause_gc():
        assert gc.isenabled()
    process_effects.release_free_memory()
    set_environment("PAIMON_TEST_VARIABLE", "x")
    assert "PAIMON_TEST_VARIABLE" not in os.environ


_ARROW_FIRST = """
import pyarrow as pa, sys
from paimon.adapters.process_effects import SystemProcessEffects, _Collector, choose_memory_pool
choose_memory_pool()
SystemProcessEffects().release_thread_memory()
inside, found = pa.allocate_buffer(1, memory_pool=pa.mimalloc_memory_pool()), False
for line in open("/proc/self/smaps"):
    words = line.split()
    if "-" in words[0] and not words[0].endswith(":"):
        begin, end = (int(part, 16) for part in words[0].split("-"))
        found = begin <= inside.address < end
    elif found and words[0] == "VmFlags:":
        print(pa.default_memory_pool().backend_name, "nh" in words, _Collector.function is not None)
"""
"""Prints the pool that is chosen after Arrow was loaded, and whether mimalloc's memory is without huge pages and can be
returned."""


@pytest.mark.skipif(
    not {"mimalloc", "jemalloc"} <= set(pa.supported_memory_backends())
    or not os.path.exists("/sys/kernel/mm/transparent_hugepage"),
    reason="Arrow has not both pools here, or Linux no huge pages",
)
@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ({}, "jemalloc True True"),
        ({SWITCH: "off"}, "mimalloc False False"),
        ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc False False"),
    ],
    ids=["on", "off", "chosen by the user"],
)
def test_mimalloc_has_small_pages_if_arrow_was_loaded_first(variable: dict[str, str], expected: str) -> None:
    ours = (SWITCH, "ARROW_DEFAULT_MEMORY_POOL", "JE_ARROW_MALLOC_CONF")
    environment = {name: value for name, value in os.environ.items() if name not in ours} | variable
    command = [sys.executable, "-c", _ARROW_FIRST]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("value", [None, "", "on", "1"])
def test_effects_are_on_by_default(collector: None, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.setenv("PAIMON_TEST_VARIABLE", "")
    if value is None:
        monkeypatch.delenv(SWITCH, raising=False)
    else:
        monkeypatch.setenv(SWITCH, value)
    with EFFECTS.pause_gc():
        assert not gc.isenabled()
    set_environment("PAIMON_TEST_VARIABLE", "x")
    assert os.environ["PAIMON_TEST_VARIABLE"] == "x"


def test_a_switch_during_a_pause_does_not_prevent_its_end(collector: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with EFFECTS.pause_gc():
        monkeypatch.setenv(SWITCH, "off")
    assert gc.isenabled()


def test_an_engine_has_no_effects_of_its_own(collector: None) -> None:
    with NoProcessEffects().pause_gc():
        assert gc.isenabled()


@pytest.mark.parametrize("state", ["enabled", "disabled", "frozen"])
def test_objects_of_loaded_modules_are_in_the_oldest_generation(
    collector: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str
) -> None:
    """No collection looks at them soon, young garbage does not become old, and what a program chose stays so."""
    (tmp_path / "loaded_module.py").write_text("import gc\nENABLED, LOADED = gc.isenabled(), [object()]\n")
    monkeypatch.syspath_prepend(tmp_path)
    gc.unfreeze()
    if state == "frozen":
        gc.freeze()
    if state == "disabled":
        gc.disable()
    try:
        garbage = ModuleType("garbage")
        garbage.itself, gone = garbage, weakref.ref(garbage)  # type: ignore[attr-defined]
        del garbage
        loaded = load_module("loaded_module")
        assert gone() is None or state != "enabled"
        assert (loaded.ENABLED, gc.isenabled()) == (False, state != "disabled")
        assert any(found is loaded.LOADED for found in gc.get_objects(generation=2)) is (state == "enabled")
        assert bool(gc.get_freeze_count()) is (state == "frozen")
    finally:
        sys.modules.pop("loaded_module", None)
        gc.unfreeze()


def test_objects_are_frozen_once_for_the_modules_that_are_loaded(
    collector: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark collects after each task, so a process exempts what its modules hold, and nothing that a task left."""
    monkeypatch.setattr(process_effects._FrozenObjects, "modules", 0)
    before = gc.get_freeze_count()
    try:
        freeze_objects()
        frozen = gc.get_freeze_count()
        assert frozen > before and frozen > 10_000
        kept = [[] for _ in range(1000)]
        freeze_objects()
        assert gc.get_freeze_count() <= frozen and len(kept) == 1000  # other threads may free frozen objects
        monkeypatch.setitem(sys.modules, "one_more_module", ModuleType("one_more_module"))
        freeze_objects()
        assert gc.get_freeze_count() > frozen + len(kept) // 2
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("reason", ["switch", "collector"])
def test_objects_are_not_frozen_against_a_choice_of_the_user(
    collector: None, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(process_effects._FrozenObjects, "modules", 0)
    before = gc.get_freeze_count()
    if reason == "switch":
        monkeypatch.setenv(SWITCH, "off")
    else:
        gc.disable()
    freeze_objects()
    assert gc.get_freeze_count() == before
