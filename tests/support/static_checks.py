"""The checks that read the code without running it: lint, format, types, direction of imports, docstrings.

`python tests/support/static_checks.py` runs them all and prints what each failing one reports. If all succeed, the next
run on the same files and versions returns at once.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAMP = ROOT / ".static_checks"
FOLDERS = ("paimon", "tests", "benchmarks", "docs", "examples")
TOOLS = ("ruff", "mypy", "import-linter", "numpydoc", "pandas-stubs")


def list_checks(root: Path) -> dict[str, list[str]]:
    """Return the command of each check by name, the longest first."""
    python = [sys.executable, "-m"]
    return {
        # One process for both packages: the second reuses the types of the first.
        "types": [*python, "mypy", "--package", "paimon", "--package", "flights"],
        "docstrings": [*python, "numpydoc", "lint", *map(str, sorted((root / "paimon").rglob("*.py")))],
        "lint": [*python, "ruff", "check", "."],
        "format": [*python, "ruff", "format", "--check", "."],
        "imports": [str(Path(sys.executable).with_name("lint-imports"))],
    }


def list_sources(root: Path) -> Iterator[Path]:
    """Yield the files that the checks read."""
    yield from (root / "pyproject.toml", root / "dev.py")
    for folder in FOLDERS:
        yield from sorted((root / folder).rglob("*.py"))


def hash_sources(root: Path) -> str:
    """Return a digest of the checked files, and of the versions of Python and of the tools."""
    digest = hashlib.sha256(f"{sys.version} {[version(tool) for tool in TOOLS]}".encode())
    for path in list_sources(root):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_check(command: Sequence[str], root: Path) -> str:
    """Run one check; return what it printed if it failed, else nothing."""
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr or f"exit code {done.returncode}") if done.returncode else ""


def run_checks(checks: Mapping[str, Sequence[str]], root: Path, stamp: Path) -> dict[str, str]:
    """Run two checks at a time; return the output of those that failed. Nothing runs again on unchanged files."""
    wanted = hash_sources(root)
    if stamp.exists() and stamp.read_text() == wanted:
        return {}
    with ThreadPoolExecutor(2) as pool:
        outputs = dict(zip(checks, pool.map(lambda command: run_check(command, root), checks.values()), strict=True))
    failed = {name: output for name, output in outputs.items() if output}
    if not failed:
        stamp.write_text(wanted)
    return failed


def main() -> int:
    """Run the checks of this repository and return the exit code."""
    checks = list_checks(ROOT)
    failed = run_checks(checks, ROOT, STAMP)
    for name, output in failed.items():
        print(f"The check of {name} failed:\n{output[-6000:]}")
    if not failed:
        print(f"{len(checks)} static checks succeeded: {', '.join(checks)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
