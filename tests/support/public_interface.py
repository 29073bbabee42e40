"""List the public names of the package with their signatures, as a table for review.

    python -m support.public_interface --write    (in tests/) write public/public_interface.txt anew

A signature lists parameters, kinds and defaults, without annotations. Names that begin with an underscore are private.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import paimon
from paimon import embed

LISTING = Path(__file__).resolve().parents[1] / "public" / "public_interface.txt"


def to_signature(function: object) -> str:
    """Return the parameters of a function with their defaults, without annotations."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return text.replace(str(Path.cwd()), ".")


def list_members(name: str, kind: type) -> Iterator[str]:
    """Yield one line for each public method and property of a class, also inherited ones of this package."""
    for member in sorted(dir(kind)):
        if member.startswith("_"):
            continue
        owner = next((c for c in kind.__mro__ if member in vars(c)), object)
        if not owner.__module__.startswith("paimon"):
            continue
        value = inspect.getattr_static(kind, member)
        if isinstance(value, (classmethod, staticmethod)):
            value = getattr(kind, member)
        signature = to_signature(value) if callable(value) and not isinstance(value, enum.Enum) else ""
        yield f"{name}.{member}{signature}"


def list_interface() -> list[str]:
    """Return one line for each public name and each member of a public class."""
    from reference_generator.stable_names import list_stable_names  # in docs/

    lines = []
    for name in sorted(paimon.__all__):
        lines += list_lines(name, getattr(paimon, name))
    lines += [f"embed.{name}{to_signature(getattr(embed, name))}" for name in sorted(embed.__all__)]
    for module, names in list_stable_names().items():
        for name, value in names.items():
            lines += list_lines(f"{module.removeprefix('paimon.')}.{name}", value)
    return lines


def list_lines(name: str, value: object) -> Iterator[str]:
    """Yield the line of a name, and those of the members of a class."""
    if not inspect.isclass(value):
        yield f"{name}{to_signature(value)}" if callable(value) else name
        return
    try:
        yield f"{name}{to_signature(value)}"
    except ValueError:  # a class of Python's own, such as an enumeration
        yield name
    yield from list_members(name, value)


def main(arguments: list[str]) -> int:
    """Write or compare the listing; return the exit code."""
    sys.path.append(str(LISTING.parents[2] / "docs"))
    text = "\n".join(list_interface()) + "\n"
    if "--write" in arguments:
        LISTING.write_text(text, "utf8")
        return 0
    return int(LISTING.read_text("utf8") != text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
