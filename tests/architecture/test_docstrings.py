"""Docstrings have the sections that a reader needs, and examples in them run."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "paimon"
MODULES = sorted(PACKAGE.rglob("*.py"))
MANY_PARAMETERS = 3


LISTED_NAMES = {
    name.split("(")[0].split(".")[-1]
    for name in (ROOT / "tests/public/public_interface.txt").read_text("utf8").split("\n")
}


def is_published(path: Path, name: str) -> bool:
    """Return whether a caller outside reads this function; the others have no sections."""
    package = path.relative_to(PACKAGE).parts[0]
    return package in ("ports", "testing", "spark") or (path.parent == PACKAGE and name in LISTED_NAMES)


def public_functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield functions and methods without an underscore, except properties and overloads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            decorators = {ast.unparse(d).split(".")[-1] for d in node.decorator_list}
            if not decorators & {"property", "cached_property", "overload", "override", "setter"}:
                yield node


def lacking_sections(node: ast.FunctionDef) -> Iterator[str]:
    """Yield the sections that the docstring of a published function must have and lacks."""
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


def test_published_functions_have_their_sections() -> None:
    lacking = [
        f"{path.relative_to(PACKAGE)} {node.name}: {', '.join(found)}"
        for path in MODULES
        for node in public_functions(ast.parse(path.read_text("utf8")))
        if is_published(path, node.name) and (found := list(lacking_sections(node)))
    ]
    assert lacking == []


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
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        for name in iterate_wrong_parameters(node)
    ]
    assert wrong == []


EXAMPLES = [p for p in MODULES if ">>>" in p.read_text("utf8")]


def test_examples_in_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = []
    for number, path in enumerate(EXAMPLES):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(MemoryFileSystem, "store", {})  # examples that use memory:// share it with other tests
        monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        if doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).failed:
            failed.append(str(path))
    assert failed == []  # doctest prints what differs
    assert len(EXAMPLES) > 5
