"""List the messages of all errors and warnings that the library raises, as a table for review.

    python tests/support/error_messages.py            compare tests/architecture/error_messages.txt with the code
    python tests/support/error_messages.py --write    write it anew

Each line has the module, the error type, the message and the hint. A value that is filled in is written as ``{name}``.
A text that a function assigns once, or that a module defines, is written out.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "paimon"
LISTING = ROOT / "tests" / "architecture" / "error_messages.txt"

ERRORS = {
    "AlreadyExists", "AmbiguousMerge", "BucketCountConflict", "CommitConflict", "CommitNotVisible",
    "CommitOverwritten", "CommitUncertain", "CorruptTable", "DeletionVectorConflict", "HashIndexConflict",
    "InvalidRequest", "KeyIndexConflict", "MissingExtra", "NotFound", "ReadConflict", "RowIdNotFound",
    "RowUpdateConflict", "SnapshotExpired", "StorageError", "Unsupported",
}  # fmt: skip
"""Types whose construction is listed; `warnings.warn` and calls of functions named `refuse…` are, too."""


def to_template(node: ast.expr, texts: Mapping[str, ast.expr]) -> str:
    """Return the text of an expression, with ``{…}`` for what is only known when it runs.

    Parameters
    ----------
    node : ast.expr
        The expression.
    texts : mapping of str to ast.expr
        The texts that variables stand for.

    Returns
    -------
    str
        The template.
    """
    if isinstance(node, ast.Name) and node.id in texts:
        return to_template(texts[node.id], {})
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(to_template(part, texts) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return to_template(node.left, texts) + to_template(node.right, texts)
    if isinstance(node, ast.IfExp):
        return f"[{to_template(node.body, texts)} | {to_template(node.orelse, texts)}]"
    return f"{{{ast.unparse(node)}}}"


def find_texts(scope: ast.AST) -> dict[str, ast.expr]:
    """Return the texts that the variables of a scope stand for: those that are assigned once."""
    assigned = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    once = {name for name, count in Counter(node.id for node in assigned).items() if count == 1}
    values = {
        node.targets[0].id: node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return {name: value for name, value in values.items() if name in once and _is_text(value)}


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) and _is_text(node.orelse)
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) and _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def list_calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call, Mapping[str, ast.expr]]]:
    """Yield each error or warning that a module makes: its name, its call and the texts of the variables there."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    scope_of = {id(node): scope for scope in (tree, *functions) for node in ast.walk(scope)}  # inner functions last
    shared = find_texts(ast.Module([node for node in tree.body if isinstance(node, ast.Assign)], []))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rsplit(".", 1)[-1]
            if name in ERRORS or name == "warn" or name.startswith("refuse"):
                scope = scope_of[id(node)]
                yield name, node, shared if scope is tree else shared | find_texts(scope)


def list_messages() -> list[str]:
    """Return one line for each message, by module and in the order of the code."""
    lines = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = str(path.relative_to(ROOT))
        for name, call, texts in sorted(list_calls(ast.parse(path.read_text("utf8"))), key=lambda c: c[1].lineno):
            parts = [to_template(argument, texts) for argument in call.args if not isinstance(argument, ast.Starred)]
            hints = [f" (hint: {to_template(k.value, texts)})" for k in call.keywords if k.arg == "hint"]
            lines.append(" ".join(f"{module}: {name}: {' | '.join(parts)}{''.join(hints)}".split()))
    return lines


def main(arguments: list[str]) -> int:
    """Write or compare the listing; return the exit code."""
    text = "\n".join(list_messages()) + "\n"
    if "--write" in arguments:
        LISTING.write_text(text, "utf8")
        return 0
    return int(LISTING.read_text("utf8") != text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
