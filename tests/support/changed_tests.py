"""Choose the test modules for a change: those nearest to it in the graph of imports, within a budget of CPU seconds.

`python3 dev.py tests --changed` prints what this module chooses, and runs it. Distance 0 are test modules that changed.
Distance 1 are those that import a changed module, and those of the folder that mirrors its package. Each import between
adds 1. At one distance the quickest modules come first. What does not fit into the budget is left to `tests`.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType

from support.recorded_durations import SMALLEST_SECONDS, read_module_seconds
from support.shared_servers import find_group

ROOT = Path(__file__).resolve().parents[2]
BUDGET_SECONDS = 200.0
"""What two cores do in three minutes, less the static checks and the start of the workers."""
START_SECONDS = {"spark": 20.0, "java": 10.0, "postgres": 4.0}
"""What the first chosen module of a group costs in addition."""
CORE = (
    "tests/architecture/test_fences.py",
    "tests/architecture/test_docstrings.py",
    "tests/architecture/test_error_messages.py",
    "tests/architecture/test_option_effects.py",
    "tests/documents/test_generated_reference.py",
    "tests/public/test_interface_listing.py",
    "tests/public/test_public_interface.py",
)
"""Modules that every change runs: the rules of the code, the listings, and the public interface."""
FOLDERS = ("paimon", "tests", "benchmarks", "docs", "examples")
IMPORT_ROOTS = ("", "tests/", "examples/", "docs/")
"""Where an absolute import looks for a module; `pythonpath` in pyproject.toml has the same."""
_IMPORT = re.compile(r"^[ \t]*((?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(?:\([^)]*\)|[^\n]*))", re.MULTILINE)
MIRRORS = {"README.md": "tests/documents", "CONTRIBUTING.md": "tests/documents", "ARCHITECTURE.md": "tests/documents",
           "docs": "tests/documents", "examples": "tests/examples", "benchmarks": "tests/benchmarks",
           "dev.py": "tests/cli"}  # fmt: skip


def find_changed_files(since: str) -> list[str]:
    """Return what differs from the merge base with `since`, committed or not; if nothing, the last commit's files."""
    base = run_git("merge-base", since, "HEAD")[0]
    untracked = run_git("ls-files", "--others", "--exclude-standard")
    changed = {*run_git("diff", "--name-only", base), *untracked}
    return sorted(changed or run_git("diff", "--name-only", "HEAD~1"))


def run_git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {arguments[0]} failed: {done.stderr.strip()}. Name a commit with --since.")
    return done.stdout.splitlines()


def list_imports(path: str, text: str, files: Collection[str]) -> Iterator[str]:
    """Yield the files that a module imports, also inside functions and for types."""
    for node in parse_imports(text):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            parts = Path(path).parts[: -node.level] if node.level else ()
            module = ".".join((*parts, *([node.module] if node.module else [])))
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        for name in names:
            for root in IMPORT_ROOTS:
                stem = root + name.replace(".", "/")
                yield from (found for found in (f"{stem}.py", f"{stem}/__init__.py") if found in files)


def parse_imports(text: str) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a module; the rest is not parsed, which would take seconds for all modules."""
    for found in _IMPORT.finditer(text):
        try:
            yield from ast.parse(found[1]).body  # type: ignore[misc]
        except SyntaxError:  # prose that begins with one of the words
            continue


def read_modules(root: Path) -> dict[str, str]:
    """Return the texts of all modules by path."""
    paths = (path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_text("utf8") for path in paths}


def find_importers(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the files that import each file; a test module imports the `conftest.py` of its folders."""
    importers = defaultdict[str, set[str]](set)
    for path, text in files.items():
        for imported in list_imports(path, text, files):
            importers[imported].add(path)
        for folder in Path(path).parents:
            if is_test_module(path) and (setup := (folder / "conftest.py").as_posix()) in files:
                importers[setup].add(path)
    return importers


def is_test_module(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def find_mirroring(changed: str, files: Iterable[str]) -> set[str]:
    """Return the test modules of the folder that belongs to a changed file."""
    parts = Path(changed).parts
    if parts[0] == "paimon":
        folder = Path("tests", *parts[1:-1]) if len(parts) > 2 else Path("tests/public")
    elif parts[0] == "tests":
        folder = Path(*parts[:2]) if not changed.endswith(".py") else Path("-")
    else:
        folder = Path(MIRRORS.get(parts[0], "-"))
    return {path for path in files if is_test_module(path) and folder in Path(path).parents}


def measure_distances(changed: Iterable[str], files: Mapping[str, str]) -> dict[str, int]:
    """Return how many imports lie between each test module and the nearest changed file."""
    importers = find_importers(files)
    nearest = {path: 0 for path in changed if path in files}
    level, distance = list(nearest), 0
    mirroring = {path for name in changed for path in find_mirroring(name, files)}
    while level or (distance == 0 and mirroring):
        distance += 1
        found = {importer for path in level for importer in importers[path]} | (mirroring if distance == 1 else set())
        level = [path for path in found if path not in nearest]
        nearest.update(dict.fromkeys(level, distance))
    return {path: value for path, value in nearest.items() if is_test_module(path)}


def estimate_seconds(paths: Iterable[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the CPU seconds of test modules; one that is not recorded, such as a new one, has those of its folder."""
    folders = defaultdict[Path, list[float]](list)
    listed = [*paths]
    for path in {*listed, *seconds}:
        folders[Path(path).parent].append(seconds.get(path, SMALLEST_SECONDS))
    return {path: seconds.get(path, median(folders[Path(path).parent])) for path in listed}


def choose_modules(
    distances: Mapping[str, int],
    seconds: Mapping[str, float],
    budget: float,
    core: Iterable[str] = CORE,
    groups: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return the core modules, then the nearest ones that fit into the budget of CPU seconds.

    `groups` names the server that modules share, if any; its start counts once.
    """
    chosen, started = list(core), set[str]()
    costs = estimate_seconds({*chosen, *distances}, seconds)
    left = budget - sum(costs[path] for path in chosen)
    for path in sorted(distances, key=lambda path: (distances[path], costs[path], path)):
        group = groups.get(path, path)
        cost = costs[path] + (START_SECONDS.get(group, 0.0) if group not in started else 0.0)
        if path not in chosen and cost <= left:
            chosen.append(path)
            started.add(group)
            left -= cost
    return chosen


def main(arguments: list[str]) -> int:
    """Print the chosen modules, one a line, and on the error stream how many there are."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--since", default="main")
    changed = find_changed_files(parser.parse_args(arguments).since)
    distances = measure_distances(changed, read_modules(ROOT))
    groups = {path: find_group(path) for path in distances}
    chosen = choose_modules(distances, read_module_seconds(), BUDGET_SECONDS, groups=groups)
    related, run = len({*distances, *CORE}), len(chosen)
    print(
        f"{len(changed)} files changed. {run} of {related} related test modules fit into the budget.", file=sys.stderr
    )
    print("\n".join(chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
