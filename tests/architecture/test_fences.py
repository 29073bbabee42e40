"""The fences: direction of imports, banned vocabulary, strict types, and the rules that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "paimon"
PURE = [PACKAGE / "domain", PACKAGE / "ports", PACKAGE / "operations"]

# The few that the domain names as state machines: they live for one parse, or one stream.
STATE_MACHINES = {"RunBuffer", "TokenReader"}


def modules(*folders: Path) -> list[Path]:
    return sorted(f for folder in folders for f in folder.rglob("*.py"))


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_imports_point_downwards() -> None:
    run(str(Path(sys.executable).with_name("lint-imports")), "--no-cache")


def test_ruff_is_clean() -> None:
    run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")


def test_types_are_strict() -> None:
    run(sys.executable, "-m", "mypy")


@pytest.mark.parametrize("path", modules(*PURE), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_core_has_no_effects(path: Path) -> None:
    tree = ast.parse(path.read_text("utf8"))
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert not called & {"open", "print", "input", "exec", "eval"}, f"{path} calls an effect"
    doc = ast.get_docstring(tree)
    assert doc or path.name == "__init__.py", f"{path} does not say what it decides"


def classes(path: Path) -> list[ast.ClassDef]:
    return [n for n in ast.walk(ast.parse(path.read_text("utf8"))) if isinstance(n, ast.ClassDef)]


def is_value_or_protocol(node: ast.ClassDef) -> bool:
    decorators = {ast.unparse(d).split("(")[0] for d in node.decorator_list}
    bases = {ast.unparse(b).split("[")[0] for b in node.bases}
    exempt = {"Protocol", "Enum", "IntEnum", "StrEnum", "NamedTuple", "TypedDict", "Exception", "PaimonError"}
    exempt |= {"UserWarning", "sqlglot.Dialect", "sqlglot.Tokenizer"}  # tables for the parser, never instantiated by us
    frozen = "frozen" in decorators or any("frozen=True" in ast.unparse(d) for d in node.decorator_list)
    return frozen or bool(bases & exempt)


@pytest.mark.parametrize("path", modules(PACKAGE / "domain"), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_domain_classes_are_frozen(path: Path) -> None:
    thawed = [c.name for c in classes(path) if not is_value_or_protocol(c) and c.name not in STATE_MACHINES]
    assert not thawed, f"{path}: {thawed}"


def test_columnar_rules_have_their_reference() -> None:
    for path in modules(PACKAGE / "domain"):
        room = next((p for p in [path, *path.parents] if p.stem == "columnar"), None)
        if room is not None:
            folder = room.parent
            twins = [folder / "reference.py", folder / "reference" / "__init__.py", folder / "binary_row.py"]
            assert any(t.exists() for t in twins), f"{path} has no reference beside it"


def test_ports_stay_small() -> None:
    for path in modules(PACKAGE / "ports"):
        for node in classes(path):
            if "Protocol" in {ast.unparse(b) for b in node.bases}:
                verbs = [n for n in node.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
                assert len(verbs) <= 8, f"{node.name} has {len(verbs)} methods"


def test_paths_that_the_map_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf8")
    named = set(re.findall(r"`((?:paimon|tests|docs|benchmarks|examples)/[\w./-]*)`", text))
    missing = [p for p in sorted(named) if not (ROOT / p).exists()]
    assert named and not missing, missing
    assert len(text.splitlines()) <= 200
