"""The page of the errors, from their classes."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

import paimon
from reference_generator.docstrings import describe
from reference_generator.markdown import block, code, page, sentence, table
from reference_generator.python_interface import error_names

_INTRODUCTION = """Every error of the library is a `paimon.PaimonError`. `error.message` says what is wrong, and
`error.hint` what you can do about it (or is `None`). `str(error)` contains both. The other fields name the object at
fault, so that a program does not parse the text. An error can be pickled."""

_WARNINGS = """Warnings are of two categories:

| Category | Meaning |
|---|---|
| `paimon.PaimonWarning` | The call is allowed, but its result may not be what you want. |
| `RuntimeWarning` | Work after the call failed, such as a callback or an expiry, or a read left a file out. |"""

_COMMAND_LINE = """The command line prints the message and the hint, and exits with code 1. See
[exit codes](command-line.md#exit-codes)."""


def generate_page() -> str:
    """Return the page."""
    errors = [kind for kind in map(vars_of_paimon, error_names()) if issubclass(kind, paimon.PaimonError)]
    return page(
        "Errors and warnings",
        _INTRODUCTION,
        _COMMAND_LINE,
        table(("Error", "Meaning"), ([_link(kind), sentence(_summary(kind))] for kind in errors)),
        "## Classes",
        block(_draw_tree(paimon.PaimonError, errors)),
        *(_describe_error(kind) for kind in errors),
        "## Warnings",
        _WARNINGS,
    )


def vars_of_paimon(name: str) -> type[Exception]:
    """Return the class of a public name."""
    kind: type[Exception] = getattr(paimon, name)
    return kind


def _link(kind: type) -> str:
    return f"[{code(kind.__name__)}](#{kind.__name__.lower()})"


def _summary(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n\n")[0]


def _draw_tree(root: type, kinds: list[type[Exception]], depth: int = 0) -> str:
    children = [kind for kind in kinds if root in kind.__bases__]
    others = [base.__name__ for base in root.__bases__ if base not in kinds]
    line = f"{'  ' * depth}{root.__name__}({', '.join(others)})" if others else f"{'  ' * depth}{root.__name__}"
    return "\n".join([line, *(_draw_tree(child, kinds, depth + 1) for child in children)])


def _describe_error(kind: type[Exception]) -> str:
    fields = [field for field in list_fields(kind) if not _is_described(kind, field[0])]
    rows = ([code(name), code(text) if text else ""] for name, text in fields)
    return "\n\n".join([f"### {kind.__name__}", describe(kind), *([table(("Field", "Type"), rows)] if fields else [])])


def _is_described(kind: type[Exception], name: str) -> bool:
    """Return whether the docstring of a class describes a field, alone or in a list of names."""
    return re.search(rf"^(\w+, )*{name}(, \w+)* : ", inspect.getdoc(kind) or "", re.M) is not None


def list_fields(kind: type) -> list[tuple[str, str]]:
    """Return the public attributes that the constructors of a class set, with their types where they state one."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not (base.__module__.startswith("paimon") and "__init__" in base.__dict__):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(base.__dict__["__init__"])))
        arguments = [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation]
        parameters = {a.arg: ast.unparse(a.annotation) for a in arguments if a.annotation}
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else None
            value = getattr(node, "value", None)
            for target in targets:
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                    stated = parameters.get(value.id, "") if isinstance(value, ast.Name) else ""
                    found[target.attr] = annotation or stated or found.get(target.attr, "")
    return [(name, text) for name, text in found.items() if not name.startswith("_")]
