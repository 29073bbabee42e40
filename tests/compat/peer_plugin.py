"""A plugin of pytest that runs the tests of pypaimon against the alias, and records the outcome of each.

A test that uses an internal name of pypaimon (a module, a name or a private attribute that the alias does not offer)
is recorded as `internal`: it does not test the public interface. All other tests pass, fail or are skipped.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import paimon.compat
from paimon.compat import alias

INTERNAL_ATTRIBUTES = frozenset(
    (
        "create_row_key_extractor", "file_scanner", "file_store_commit", "file_store_write", "index_file",
        "path_factory", "row_key_extractor", "with_dynamic_bucket_index", "write_file",
    )
)  # fmt: skip
"""Attributes whose values are internal objects of pypaimon: its planners, writers and commits of files."""
INTERNAL_OWNERS = {
    "file_io": ("FileSystemCatalog", "JdbcCatalog"),
    "file_path": ("DataFileMeta",),
    "from_schema": ("TableSchema",),
    "table": ("TableWrite",),
    "to_avro_type": ("PyarrowFieldParser",),
}
"""Attributes that are internal of some classes: catalogs whose storage is replaced, writers without a constructor."""
INTERNAL_CONSTRUCTORS = ("CommitMessage", "TableCommit", "FileIO")
"""Classes that programs get from methods; tests of internals make them of mocks and files."""
_RUNNING = False
"""True while a test runs: internal names then end the test. Modules may name them while they are imported."""


def use_internal(name: str) -> None:
    if _RUNNING:
        pytest.skip(f"internal: {name}")


class InternalMeta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        use_internal(cls.__name__)
        return make_internal(f"{cls.__name__}.{name}")

    def __call__(cls, *arguments: object, **named: object) -> Any:
        use_internal(cls.__name__)
        if arguments and callable(arguments[0]):
            return arguments[0]  # a decorator
        return make_internal(cls.__name__)

    def __instancecheck__(cls, instance: object) -> bool:
        use_internal(cls.__name__)
        return False


def make_internal(name: str) -> Any:
    return InternalMeta(name, (), {})


class TolerantModule(alias.AliasModule):
    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except ImportError:
            if name == "pytest_plugins":
                raise AttributeError(name) from None
            use_internal(f"{self.__name__}.{name}")
            return make_internal(f"{self.__name__}.{name}")


class InternalModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        use_internal(f"{self.__name__}.{name}")
        return make_internal(f"{self.__name__}.{name}")


class TolerantFinder(MetaPathFinder, Loader):
    def __init__(self, tests: Path) -> None:
        self._tests = tests

    def find_spec(self, fullname: str, path: object, target: object = None) -> Any:
        if fullname.startswith("pypaimon.tests"):
            return self._find_test_module(fullname)
        if fullname == "pypaimon" or fullname.startswith("pypaimon."):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def _find_test_module(self, fullname: str) -> Any:
        from importlib.util import spec_from_file_location

        place = self._tests.joinpath(*fullname.split(".")[2:])
        if place.is_dir():
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return spec_from_file_location(fullname, place.with_suffix(".py"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        offered = spec.name in alias.HOMES or spec.name in alias.PACKAGES
        return TolerantModule(spec.name) if offered else InternalModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if isinstance(module, InternalModule):
            use_internal(module.__name__)


def find_internal(error: BaseException) -> str | None:
    """Return the internal attribute or constructor that an error names."""
    text = str(error)
    if isinstance(error, AttributeError):
        name = str(getattr(error, "name", None) or text.rpartition("attribute '")[2].rstrip("'"))
        thing = getattr(error, "obj", None)
        owner = thing.__name__ if isinstance(thing, type) else type(thing).__name__
        if name.startswith("_") or name in INTERNAL_ATTRIBUTES or owner == "FileIO":
            return f"attribute {name}"
        if owner in INTERNAL_OWNERS.get(name, ()):
            return f"attribute {name} of {owner}"
    if "InternalMeta" in text:
        return "a constant"
    if "'Mock' object" in text or "'MagicMock' object" in text:
        return "a mock in place of an object"
    if isinstance(error, AttributeError) and text.endswith("object has no setter"):
        return "another object in place of a part of a table"
    if isinstance(error, TypeError) and text.startswith(tuple(f"{n}.__init__()" for n in INTERNAL_CONSTRUCTORS)):
        return f"constructor {text.partition('.')[0]}"
    return None


OUTCOMES: dict[str, tuple[str, str]] = {}


def pytest_configure(config: pytest.Config) -> None:
    paimon.compat.install()
    sys.meta_path.insert(0, TolerantFinder(Path(os.environ["PYPAIMON_TESTS"])))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    global _RUNNING
    _RUNNING = True
    try:
        return (yield)
    finally:
        _RUNNING = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    known = OUTCOMES.get(item.nodeid, ("passed", ""))
    if known[0] != "passed":
        return report
    if isinstance(error, pytest.skip.Exception):
        text = str(error)
        OUTCOMES[item.nodeid] = ("internal" if text.startswith("internal:") else "skipped", text)
    elif error is not None and (name := find_internal(error)):
        OUTCOMES[item.nodeid] = ("internal", f"internal: {name}")
    elif error is not None:
        OUTCOMES[item.nodeid] = ("failed", f"{type(error).__name__}: {error}"[:300])
    else:
        OUTCOMES[item.nodeid] = known
    return report


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        OUTCOMES[report.nodeid] = ("failed", f"collection: {report.longreprtext[-300:]}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    Path(os.environ["PYPAIMON_OUTCOMES"]).write_text(json.dumps(OUTCOMES, indent=1, sort_keys=True))
