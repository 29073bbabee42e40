"""The public methods of pypaimon with the names of their parameters, read from its source without importing it."""

from __future__ import annotations

import ast
from pathlib import Path

Signatures = dict[str, dict[str, list[str]]]


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
        Parameters without `self`, by the full name of a class or module, and by method.
    """
    found: Signatures = {}
    for module, names in sorted(homes.items()):
        place = root.joinpath(*module.split("."))
        source = place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
        for node in ast.parse(source.read_text("utf8")).body:
            if isinstance(node, ast.ClassDef) and node.name in names:
                methods = {m.name: list_parameters(m) for m in node.body if is_public_method(m)}
                found[f"{module}.{node.name}"] = dict(sorted(methods.items()))
    return found


def is_public_method(node: ast.stmt) -> bool:
    """Return whether a statement defines a public method, or the constructor."""
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return is_function and (node.name == "__init__" or not node.name.startswith("_"))


def list_parameters(node: ast.stmt) -> list[str]:
    """Return the names of the parameters of a method, without `self` and `cls`."""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    given = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return [name for name in given if name not in ("self", "cls")]
