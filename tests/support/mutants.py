"""Mutants: small mistakes planted into a module, and whether tests find them.

From the root of the repository, this makes the mutants of the busiest modules of the domain, and runs the tests of each
in turn. It reports those that no test finds. A number draws so many of each module; names choose modules::

    PYTHONPATH=tests python -m support.mutants
    PYTHONPATH=tests python -m support.mutants 20 merge/windows.py

A mutant that no test finds is either equivalent, and then the code can be simpler, or it lacks a test.
"""

from __future__ import annotations

import ast
import importlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOMAIN = ROOT / "paimon" / "domain"
TESTS = ROOT / "tests" / "domain"
SECONDS = 300
"""The tests of one mutant take no longer; a mutant that runs on is found."""

BUSY_MODULES = {
    "merge/windows.py": ("merge/test_merge_windows.py",),
    "merge/partial_update_columnar.py": ("merge/test_merge_engines.py", "merge/test_merge_engine_contract.py"),
    "scan/assemble.py": ("scan/test_splits.py",),
    "scan/splits.py": ("scan/test_splits.py",),
    "commit/conflicts/files.py": ("commit/test_file_conflicts.py", "commit/test_deletion_vector_conflicts.py"),
    "lsm/compaction/pick.py": ("lsm/test_compaction_picks.py",),
    "lsm/compaction/tree.py": ("lsm/test_compaction_picks.py", "lsm/test_compaction_units.py"),
    "lsm/compaction/unit_plan.py": ("lsm/test_compaction_units.py",),
    "lsm/sorted_run.py": ("lsm/test_sorted_runs.py",),
    "maintenance/snapshot_expiry.py": ("maintenance/test_expiry_rules.py",),
    "manifest/merge_entries.py": ("manifest/test_manifests.py",),
    "bucket/bucket_rule.py": ("bucket/test_buckets.py",),
    "row/kinds.py": ("row/test_row_kinds.py",),
    "deletion/vector.py": ("deletion/test_deletion_vectors.py",),
    "changelog/difference_columnar.py": ("changelog/test_changelog_rules.py",),
}
"""Modules that most reads, writes and commits run, and the nearest tests of each."""


class Mutant(NamedTuple):
    """A module of the domain with one mistake."""

    module: str
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before} -> {self.after}"


_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}


def make_mutants(module: str) -> list[Mutant]:
    """Return the mutants of the functions of a module, in the order of their lines."""
    tree = ast.parse((DOMAIN / module).read_text("utf8"))
    found = []
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for parent in (node for statement in function.body for node in _walk_code(statement)):
            found += _mutate_children(tree, parent, module)
        found += _mutate_children(tree, function, module, "body")
    return sorted(dict.fromkeys(found), key=lambda mutant: mutant.line)


def _walk_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, without texts and `strict=True`."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg == "strict"):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk_code(child)


def _mutate_children(tree: ast.Module, parent: ast.AST, module: str, only: str | None = None) -> Iterator[Mutant]:
    """Yield a mutant for each mistake in a child of a node; the tree is as before afterwards."""
    for name, value in ast.iter_fields(parent):
        if name in ("annotation", "returns", "args" if isinstance(parent, ast.FunctionDef) else "") or (
            only is not None and name != only
        ):
            continue
        children = value if isinstance(value, list) else [value]
        for place, child in enumerate(children):
            for wrong in _list_mistakes(child) if isinstance(child, ast.AST) else ():
                setattr(
                    parent, name, [*children[:place], wrong, *children[place + 1 :]] if value is children else wrong
                )
                source = ast.unparse(ast.fix_missing_locations(tree))
                yield Mutant(module, child.lineno, ast.unparse(child), ast.unparse(wrong), source)  # type: ignore[attr-defined]
                setattr(parent, name, value)


def _list_mistakes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a hasty author could have written in the place of a node."""
    match node:
        case ast.Compare(left, [operator], values) if type(operator) in _COMPARED:
            yield ast.Compare(left, [_COMPARED[type(operator)]()], values)
        case ast.BinOp(left, operator, right) if type(operator) in _COMPUTED:
            yield ast.BinOp(left, _COMPUTED[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.Invert(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
        case ast.Call(ast.Name(name), arguments, keywords) if name in _CALLED:
            yield ast.Call(ast.Name(_CALLED[name]), arguments, keywords)
        case ast.Call(function, [first, second, *more], keywords):
            if type(first) is type(second) and not isinstance(first, ast.Starred):
                yield ast.Call(function, [second, first, *more], keywords)
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign([ast.Subscript() | ast.Attribute()]):
            yield ast.Pass()


class _OtherSource(MetaPathFinder, SourceFileLoader):
    """Load one module of the domain from another source."""

    def __init__(self, module: str, source: str) -> None:
        self._module = "paimon.domain." + module.removesuffix(".py").replace("/", ".")
        self._source = source
        SourceFileLoader.__init__(self, self._module, str(DOMAIN / module))

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self._module else None

    def get_code(self, fullname: str) -> object:
        return compile(self._source, self.path, "exec")


def run_tests(module: str, source: str, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str] | None:
    """Run tests of the domain with another source of one module until one fails; None if they take too long."""
    command = [sys.executable, "-m", "support.mutants", "--run", module, *tests]
    paths = os.pathsep.join(filter(None, [str(ROOT / "tests"), str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PAIMON_TEST_PROFILE": "ci", "PYTHONPATH": paths}
    try:
        return subprocess.run(
            command, input=source, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None


def _run_pytest(tests: Sequence[str]) -> int:
    import pytest
    from hypothesis.internal.conjecture import engine

    engine.MAX_SHRINKING_SECONDS = 0  # any example will do
    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *(str(TESTS / name) for name in tests)]))


def find_survivors(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Return mutants whose module's tests pass; each runs in a fork that has loaded other packages."""
    for package in ("hypothesis", "numpy", "pyarrow.compute", "pyroaring", "pytest"):
        importlib.import_module(package)
    waiting, running, survivors = [*reversed(mutants)], dict[int, tuple[Mutant, float]](), list[Mutant]()
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            mutant = waiting.pop()
            child = os.fork() or os._exit(_run_quietly(mutant))
            running[child] = mutant, time.monotonic()
        time.sleep(0.05)
        for child, (mutant, start) in [*running.items()]:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del running[child]
                survivors += [mutant] if status == 0 else []
            elif time.monotonic() - start > SECONDS:
                os.kill(child, signal.SIGKILL)  # the next round counts it as found
    return survivors


def _run_quietly(mutant: Mutant) -> int:
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        sys.meta_path.insert(0, _OtherSource(mutant.module, mutant.source))
        return _run_pytest(BUSY_MODULES[mutant.module])
    except BaseException:
        return 1


def main(arguments: list[str]) -> int:
    """Run the mutants of modules, and print those that no test finds."""
    if arguments[:1] == ["--run"]:
        sys.meta_path.insert(0, _OtherSource(arguments[1], sys.stdin.read()))
        return _run_pytest(arguments[2:])
    os.environ["PAIMON_TEST_PROFILE"] = "ci"
    count = next((int(text) for text in arguments if text.isdigit()), None)
    chosen = [text for text in arguments if not text.isdigit()] or [*BUSY_MODULES]
    missed = 0
    for module in chosen:
        mutants = make_mutants(module)
        if count is not None:
            mutants = random.Random(0).sample(mutants, min(count, len(mutants)))
        whole = Mutant(module, 0, "", "", (DOMAIN / module).read_text("utf8"))
        if not find_survivors([whole]):
            print(f"{module}: its tests fail without a mutant", flush=True)
            return 2
        survivors = find_survivors(mutants)
        print(f"{module}: {len(mutants) - len(survivors)} of {len(mutants)} found", flush=True)
        for mutant in survivors:
            print(f"    {mutant}", flush=True)
        missed += len(survivors)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
