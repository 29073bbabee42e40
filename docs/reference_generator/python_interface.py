"""The pages of the Python interface, from the signatures and docstrings of the public names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from typing import get_args

import attrs

import paimon
from paimon.sql.run.result import SqlResult
from paimon.sql.run.run_statements import SqlSession
from reference_generator.docstrings import describe, signature
from reference_generator.markdown import block, code, page, paragraph, table
from reference_generator.sample import open_sample
from reference_generator.stable_names import list_stable_names

_INTRODUCTION = """The names of the module `paimon` are the public interface, with the classes that its functions and
methods return. [Stability](../stability.md) says which other names are stable.

The page of a class lists its properties, then its methods, in alphabetical order. [Errors](../errors.md) and
[options](../options.md) have pages of their own."""

_FUNCTIONS = (
    "connect",
    "open_table",
    "open_system_table",
    "read_files",
    "scan_polars",
    "scan_daft",
    "attach_duckdb",
    "attach_datafusion",
    "cdc",
    "deadline",
    "run_async",
    "iterate_async",
)
_VALUES = ("WriteResult", "MergeResult", "CdcResult", "Snapshot", "CommitEvent")


def generate_pages() -> dict[str, str]:
    """Return the pages by their path in the folder of the reference: an index, and a page for each class."""
    spark, embed = import_module("paimon.spark"), import_module("paimon.embed")
    topics = {
        "Functions": [_describe_function(f"paimon.{name}", getattr(paimon, name)) for name in _FUNCTIONS],
        **{name: [describe(kind), *_describe_members(name, kind)] for name, kind in list_classes().items()},
        "Conditions": [
            _describe_function("paimon.col", paimon.col),
            "Combine conditions with `&`, `|` and `~`, each in parentheses.",
            *_describe_members("Column", type(paimon.col("name"))),
        ],
        "Schema changes": [
            "`Table.alter` takes these values. `paimon.SchemaChange` is the type of any of them.",
            *(_describe_value(kind.__name__, kind) for kind in (*get_args(paimon.SchemaChange), paimon.Position)),
        ],
        "Values": [_describe_value(name, getattr(paimon, name)) for name in _VALUES],
        "Module paimon.embed": [
            "See [embed the library](../../how-to/embed.md#supply-your-own-ports).",
            *(
                _describe_function(f"paimon.embed.{name}", getattr(embed, name))
                for name in ("make_engine", "make_catalog", "make_opentelemetry_observer")
            ),
            *_describe_class("paimon.embed.BufferedOutput", embed.BufferedOutput),
        ],
        **_describe_stable_modules(),
        "Module paimon.spark": [
            "Needs the extra `spark`.",
            *(_describe_function(f"paimon.spark.{name}", getattr(spark, name)) for name in sorted(spark.__all__)),
        ],
    }
    pages = {f"python/{_to_file_name(title)}": page(title, *parts) for title, parts in topics.items()}
    return {"python/index.md": _generate_index(topics), **pages}


def _describe_stable_modules() -> dict[str, list[str]]:
    """Return the pages of the ports, the test kit and the domain."""
    topics: dict[str, list[str]] = {
        "Module paimon.ports": ["See [embed the library](../../how-to/embed.md#supply-your-own-ports)."],
        "Module paimon.testing": ["See [test with the kit](../../how-to/test-with-the-kit.md)."],
        "Module paimon.domain": [
            "The main values of the domain, which does no I/O. [Stability](../stability.md) says what else may change."
        ],
    }
    for module, names in list_stable_names().items():
        for name, value in names.items():
            parts = topics.get(f"Module {'.'.join(module.split('.')[:2])}")
            if parts is not None and isinstance(value, type):
                parts += _describe_class(f"{module}.{name}", value)
            elif parts is not None and get_args(value):
                kinds = ", ".join(code(kind.__name__) for kind in get_args(value))
                parts += [f"## {module}.{name}", f"One of {kinds}."]
            elif parts is not None and isinstance(value, tuple):
                parts += [f"## {module}.{name}", f"The names {', '.join(map(code, value))}."]
            elif parts is not None:
                parts.append(_describe_function(f"{module}.{name}", value))
    return topics


def _describe_class(name: str, kind: type) -> list[str]:
    """Return a class with its members under headings of its own; the cases of a contract are a list."""
    try:
        call = block(signature(name, kind), "py")
    except ValueError:  # an enumeration
        call = ""
    is_protocol = getattr(kind, "_is_protocol", False) or "__init__" not in vars(kind)
    members = dict(iterate_members(kind))
    cases = [member for member in members if member.startswith("test_")]
    parts = [f"## {name}", "" if is_protocol and not attrs.has(kind) else call, describe(kind)]
    if issubclass(kind, Enum):
        parts.append(", ".join(code(f"{kind.__name__}.{member.name}") for member in kind))
    shown = [member for member in members if member not in cases]
    for member in shown:
        [text] = _describe_members(kind.__name__, kind, member)
        parts.append(f"#{text}")
    if cases:
        rows = [
            [code(case), (inspect.getdoc(members[case]) or "").split("\n\n")[0].replace("\n", " ")] for case in cases
        ]
        parts.append(table(("Case", "What it tests"), rows))
    return [part for part in parts if part]


def _to_file_name(title: str) -> str:
    """Return the name of a page: ``"TableRead"`` becomes ``"table-read.md"``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])| ", "-", title.removeprefix("Module paimon.")).lower() + ".md"


def _generate_index(titles: Iterable[str]) -> str:
    """Return the page that lists the others, and the names that have no page."""
    return page(
        "Python interface",
        _INTRODUCTION,
        table(("Page", "Contains"), [
            [f"[{title}]({_to_file_name(title)})", _summarize(title)] for title in titles
        ]),
        "## Other names",
        table(("Name", "Meaning"), [
            [code("paimon.__version__"), "The version of the library."],
            [code("paimon.DEAD_LETTER_SCHEMA"), "The schema of a table for events that `paimon.cdc` cannot read."],
            *([code(f"paimon.{name}"), "See [errors](../errors.md)."] for name in error_names()),
        ]),
    )  # fmt: skip


def _summarize(title: str) -> str:
    """Return what a page contains, in one line."""
    known = {
        "Functions": ", ".join(code(name) for name in _FUNCTIONS),
        "Conditions": "`paimon.col` and its methods",
        "Schema changes": "the values that `Table.alter` takes",
        "Values": ", ".join(code(name) for name in _VALUES),
        "Module paimon.embed": "an engine and a catalog on ports of your own",
        "Module paimon.ports": "the protocols of adapters, and the values they exchange",
        "Module paimon.testing": "contracts of adapters, strategies, and adapters for tests",
        "Module paimon.domain": "the main values of the domain",
        "Module paimon.spark": "functions that take a Spark session",
    }
    kind = list_classes().get(title)
    return known[title] if kind is None else (kind.__doc__ or "").strip().splitlines()[0]


def error_names() -> list[str]:
    """Return the public names of errors and warnings, in alphabetical order."""
    named = ((name, getattr(paimon, name)) for name in sorted(paimon.__all__))
    return [name for name, value in named if isinstance(value, type) and issubclass(value, Exception)]


@cache
def list_classes() -> dict[str, type]:
    """Return the classes with methods, by name, from the catalog down to a commit."""
    with open_sample() as table:
        reading, batch, stream = (
            table.new_read_builder(),
            table.new_batch_write_builder(),
            table.new_stream_write_builder(),
        )
        planning = reading.new_scan()
        with batch.new_write() as writer:
            values: list[object] = [
                table.tags, table.branches, table.consumers, table.maintain, table.changes(), table.follow(),
                reading, planning, planning.plan(), reading.new_read(),
                batch, stream, writer, batch.new_commit(), stream.new_commit(),
            ]  # fmt: skip
    opened = [paimon.Catalog, SqlSession, SqlResult, paimon.Table, paimon.Scan, paimon.SystemTable, paimon.MergeBuilder]
    classes = [*opened, *map(type, values), paimon.CancelToken]
    return {kind.__name__: kind for kind in classes}


def _describe_function(name: str, function: object) -> str:
    assert callable(function)
    return f"## {name}\n\n{block(signature(name, function), 'py')}\n\n{describe(function)}"


def _describe_value(name: str, kind: type) -> str:
    parts = [f"## paimon.{name}", block(signature(f"paimon.{name}", kind), "py"), describe(kind)]
    if attrs.has(kind):
        parts += [
            paragraph(f"`{name}.{member}`: {describe(value, _find_doc(kind, member))}")
            for member, value in iterate_members(kind)
            if isinstance(value, property)
        ]
    return "\n\n".join(parts)


def _describe_members(name: str, kind: type, only: str | None = None) -> Iterator[str]:
    for member, value in iterate_members(kind):
        if only not in (None, member):
            continue
        text = describe(value, _find_doc(kind, member))
        if isinstance(value, property):
            annotation = getattr(value.fget, "__annotations__", {}).get("return", "")
            call = f"{name}.{member}: {annotation}" if annotation else f"{name}.{member}"
        else:
            call = signature(f"{name}.{member}", value)
            original = getattr(value, "__name__", member)
            if original != member and getattr(kind, original, None) is value:
                text = f"The same as [`{name}.{original}`](#{name.lower()}{original})."
        yield f"## {name}.{member}\n\n{block(call, 'py')}" + (f"\n\n{text}" if text else "")


def iterate_members(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the public properties of a class, then its public methods, each in alphabetical order."""
    members = [(name, value) for name, value in inspect.getmembers(kind) if not name.startswith("_")]
    yield from ((name, value) for name, value in members if isinstance(value, property))
    for name, value in members:
        if inspect.isroutine(value) and (getattr(value, "__module__", None) or "").startswith("paimon"):
            yield name, value


def _find_doc(kind: type, member: str) -> str:
    """Return the docstring of a member, or that of the method that it overrides."""
    docs = (getattr(base.__dict__.get(member), "__doc__", None) for base in kind.__mro__)
    return next((doc for doc in docs if doc), "")
