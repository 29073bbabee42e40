"""The public methods of pypaimon: parameters, defaults and return types, read from its source without importing it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypedDict


class Signature(TypedDict):
    """The parameters of a method with the texts of their defaults (None: required), and its return type."""

    parameters: dict[str, str | None]
    returns: str | None


Signatures = dict[str, dict[str, Signature]]


def read_signatures(root: Path, homes: dict[str, list[str]]) -> Signatures:
    """Return the parameters of each public method of the listed classes, by class and method.

    Parameters
    ----------
    root : Path
        The folder that contains the package `pypaimon`.
    homes : dict of str to list of str
        The names of each module.

    Returns
    -------
    dict
        The signature of each method, by the full name of a class, and by method.
    """
    found: Signatures = {}
    for module, names in sorted(homes.items()):
        place = root.joinpath(*module.split("."))
        source = place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
        for node in ast.parse(source.read_text("utf8")).body:
            if isinstance(node, ast.ClassDef) and node.name in names:
                methods = {m.name: describe(m) for m in node.body if is_public_method(m)}
                found[f"{module}.{node.name}"] = dict(sorted(methods.items()))
    return found


def is_public_method(node: ast.stmt) -> bool:
    """Return whether a statement defines a public method, or the constructor."""
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return is_function and (node.name == "__init__" or not node.name.startswith("_"))


def describe(node: ast.stmt) -> Signature:
    """Return the parameters of a method without `self` and `cls`, each with its default, and what it returns."""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    named = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(named) - len(node.args.defaults)), *node.args.defaults]
    pairs = [*zip(named, defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    parameters = {a.arg: None if d is None else ast.unparse(d) for a, d in pairs if a.arg not in ("self", "cls")}
    return {"parameters": parameters, "returns": None if node.returns is None else ast.unparse(node.returns)}
