"""Signatures and docstrings as Markdown; docstrings are in numpydoc's form."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from attrs import NOTHING

from reference_generator.markdown import block, code, paragraph, prose, table

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
_WIDTH = 100
_OMITTED = ("self", "cls")


def describe(value: object, documentation: str | None = None) -> str:
    """Return the docstring of a function, class or property as Markdown."""
    text = inspect.getdoc(value) if documentation is None else inspect.cleandoc(documentation)
    first, *sections = _SECTION.split(text or "")
    described = [_describe_section(name, body) for name, body in zip(sections[::2], sections[1::2], strict=True)]
    return "\n\n".join(part for part in (_describe_body(first), *described) if part)


def _describe_body(text: str) -> str:
    parts = []
    for found in re.split(r"\n\s*\n", text.strip()):
        if found.lstrip().startswith(">>>"):
            parts.append(block(inspect.cleandoc(found), "py"))
        elif found.startswith("    "):
            parts.append(block(inspect.cleandoc(found)))
        else:
            parts.append(found.replace("<", "&lt;") if "`" not in found else found)
    return "\n\n".join(parts)


def _describe_section(name: str, body: str) -> str:
    if name in ("Parameters", "Attributes", "Other Parameters"):
        rows = [
            [", ".join(code(n.strip()) for n in entry.split(",")), code(kind) if kind else "", prose(text)]
            for entry, kind, text in _entries(body)
        ]
        if len(rows) == 1:
            names, kinds, text = (cell.replace("\\|", "|") for cell in rows[0])
            return paragraph(
                f"{name if ',' in names else name.removesuffix('s')} {names}{f' ({kinds})' if kinds else ''}: {text}"
            )
        return f"{name}:\n\n{table(('Name', 'Type', 'Meaning'), rows)}"
    if name in ("Returns", "Yields", "Raises", "Warns"):
        found = [_describe_result(f"{entry} : {kind}" if kind else entry, text) for entry, kind, text in _entries(body)]
        if len(found) == 1:
            return paragraph(f"{name} {found[0]}")
        return "\n".join([f"{name}:\n", *(paragraph(f"- {result}", indent="  ") for result in found)])
    return f"{name}:\n\n{_describe_body(body)}"


def _describe_result(types: str, text: str) -> str:
    """Return what is returned or raised, for a line outside of a table, where ``|`` is not escaped."""
    names = [types] if "[" in types else types.split(",")
    return f"{', '.join(code(name.strip()) for name in names)}: {prose(text)}".removesuffix(": ").replace("\\|", "|")


def _entries(body: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the type and the text of each entry of a section."""
    for entry in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, text = entry.partition("\n")
        name, _, kind = head.partition(" : ")
        yield name.strip(), kind.strip(), text


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return a call with its parameters, types and defaults, one parameter a line where it is long."""
    found = inspect.signature(function)
    parts = []
    is_keyword_only = False
    for parameter in found.parameters.values():
        if parameter.name in _OMITTED:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            parts.append("*")
        is_keyword_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        parts.append(_parameter(parameter))
    returned = found.return_annotation
    has_result = returned is not found.empty and not isinstance(function, type)
    arrow = f" -> {_annotation(returned)}" if has_result else ""
    short = f"{name}({', '.join(parts)}){arrow}"
    if len(short) <= _WIDTH:
        return short
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){arrow}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    has_type = parameter.annotation is not parameter.empty
    kind = f": {_annotation(parameter.annotation)}" if has_type else ""
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{kind}"
    shown = repr(parameter.default)
    default = "…" if parameter.default is NOTHING or " at 0x" in shown else shown
    return f"{stars}{parameter.name}{kind}{' = ' if kind else '='}{default}"


def _annotation(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
