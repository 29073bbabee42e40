"""Docstrings have the sections that a reader needs, and examples in them run."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from reference_generator import python_interface

import paimon

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "paimon"
MODULES = sorted(PACKAGE.rglob("*.py"))
MANY_PARAMETERS = 3


@cache
def list_published() -> set[tuple[str, str]]:
    """Return the module and the qualified name of each class and function that a caller outside reads.

    These are the public names, the classes that the reference page documents, and the members of both.
    """
    spark = importlib.import_module("paimon.spark")
    embed = importlib.import_module("paimon.embed")
    named = [getattr(module, name) for module in (paimon, spark, embed) for name in module.__all__]
    values = [*named, *python_interface.list_classes().values(), type(paimon.col("a")), *get_args(paimon.SchemaChange)]
    found = {(value.__module__, value.__qualname__) for value in values if hasattr(value, "__qualname__")}
    for kind in (kind for value in values if isinstance(value, type) for kind in value.__mro__):
        found.add((kind.__module__, kind.__qualname__))
        found |= {(kind.__module__, f"{kind.__qualname__}.{name}") for name in vars(kind)}
    return found


SECTION = re.compile(r"^(Parameters|Returns|Yields|Raises|Attributes)\n-+$", re.MULTILINE)


def is_published(path: Path, name: str) -> bool:
    """Return whether a caller outside reads this class or function; the others have no sections."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1] in ("ports", "testing") or (".".join(parts).removesuffix(".__init__"), name) in list_published()


def iterate_definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Yield each class and function with its qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name, node
            inside = "." if isinstance(node, ast.ClassDef) else ".<locals>."
            yield from iterate_definitions(node, prefix + node.name + inside)
        else:
            yield from iterate_definitions(node, prefix)


def is_checked(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Return whether a definition is a function without an underscore, and no property or overload."""
    if isinstance(node, ast.ClassDef) or node.name.startswith("_"):
        return False
    decorators = {ast.unparse(d).split(".")[-1] for d in node.decorator_list}
    return not decorators & {"property", "cached_property", "overload", "override", "setter"}


def lacking_sections(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield the sections that the docstring of a published function must have and lacks."""
    assert isinstance(node, ast.FunctionDef)
    doc = ast.get_docstring(node) or ""
    given = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.arg not in ("self", "cls")]
    returns = node.returns is not None and ast.unparse(node.returns) != "None"
    if len(given) >= MANY_PARAMETERS:
        if not has_section(doc, "Parameters"):
            yield "Parameters"
        if returns and not has_section(doc, "Returns|Yields"):
            yield "Returns"
    if any(isinstance(n, ast.Raise) and n.exc is not None for n in ast.walk(node)) and not has_section(doc, "Raises"):
        yield "Raises"


def has_section(doc: str, title: str) -> bool:
    """Return whether the docstring has this section."""
    return re.search(rf"^(?:{title})\n-+$", doc, re.MULTILINE) is not None


@cache
def list_definitions() -> list[tuple[Path, str, ast.FunctionDef | ast.ClassDef]]:
    """Return the classes and functions of the package; workers that do not run this module do not need them."""
    trees = ((path, ast.parse(path.read_text("utf8"))) for path in MODULES)
    return [(path, name, node) for path, tree in trees for name, node in iterate_definitions(tree)]


def test_published_functions_have_their_sections() -> None:
    lacking = [
        f"{path.relative_to(PACKAGE)} {name}: {', '.join(found)}"
        for path, name, node in list_definitions()
        if is_published(path, name) and is_checked(node) and (found := list(lacking_sections(node)))
    ]
    assert lacking == []


def test_other_docstrings_have_no_sections() -> None:
    given = [
        f"{path.relative_to(PACKAGE)} {name}"
        for path, name, node in list_definitions()
        if not is_published(path, name) and SECTION.search(ast.get_docstring(node) or "")
    ]
    assert given == []


def iterate_documented(doc: str) -> Iterator[str]:
    """Yield the names in the section Parameters."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S|\Z)", doc, re.MULTILINE | re.DOTALL)
    for line in found[1].splitlines() if found else []:
        if line and not line.startswith(" "):
            yield from (name.strip().lstrip("*") for name in line.split(" : ")[0].split(","))


def list_parameters(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """Return the parameters of a function, or of the constructor of a class; fields of attrs classes count."""
    if isinstance(node, ast.ClassDef):
        members = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        if "__init__" in members:
            return list_parameters(members["__init__"])
        fields = [n.target for n in node.body if isinstance(n, ast.AnnAssign)]
        return {target.id.lstrip("_") for target in fields if isinstance(target, ast.Name)}
    given = node.args
    variadic = [a for a in (given.vararg, given.kwarg) if a is not None]
    return {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, *variadic)} - {"self", "cls"}


def iterate_wrong_parameters(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield documented names that do not exist, and parameters of a documented function that are missing."""
    documented, real = set(iterate_documented(ast.get_docstring(node) or "")), list_parameters(node)
    yield from documented - real
    if documented and isinstance(node, ast.FunctionDef):
        yield from real - documented


def test_documented_parameters_exist() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} {node.name}: {name}"
        for path, _, node in list_definitions()
        for name in iterate_wrong_parameters(node)
    ]
    assert wrong == []


def test_examples_in_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = []
    examples = [path for path in MODULES if ">>>" in path.read_text("utf8")]
    for number, path in enumerate(examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(MemoryFileSystem, "store", {})  # examples that use memory:// share it with other tests
        monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        if doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).failed:
            failed.append(str(path))
    assert failed == []  # doctest prints what differs
    assert len(examples) > 5
