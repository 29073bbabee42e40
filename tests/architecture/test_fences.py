"""Architecture checks that no linter has; `tests/support/static_checks.py` runs the linters and mypy."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "paimon"
PURE = [PACKAGE / "domain", PACKAGE / "capture", PACKAGE / "ports", PACKAGE / "operations"]

# The few that the domain names as state machines: they live for one parse, or one stream.
STATE_MACHINES = {
    "BloomFilterBuilder",
    "BtreeWriter",
    "ColumnSummary",
    "DynamicBuckets",
    "HashFilter",
    "IndexBuilder",
    "IndexBytes",
    "KeyHashes",
    "KeyIndexCheck",
    "RowNumberer",
    "RunBuffer",
    "SafeSnapshot",
    "StatementReader",
    "TokenReader",
    "_EntryBuffer",
    "_JavaMap",
}


@cache
def modules(*folders: Path) -> list[Path]:
    return sorted(f for folder in folders for f in folder.rglob("*.py"))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf8"))


@cache
def list_nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parse(path)))


def test_the_core_has_no_effects() -> None:
    found = []
    for path in modules(*PURE):
        called = {n.func.id for n in list_nodes(path) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        found += [f"{path} calls {name}" for name in called & {"open", "print", "input", "exec", "eval"}]
        if not ast.get_docstring(parse(path)) and path.name != "__init__.py":
            found.append(f"{path} has no module docstring")
    assert found == []


def classes(path: Path) -> list[ast.ClassDef]:
    return [n for n in list_nodes(path) if isinstance(n, ast.ClassDef)]


def is_value_or_protocol(node: ast.ClassDef) -> bool:
    decorators = {ast.unparse(d).split("(")[0] for d in node.decorator_list}
    bases = {ast.unparse(b).split("[")[0] for b in node.bases}
    exempt = {
        "Protocol",
        "Enum",
        "IntEnum",
        "StrEnum",
        "NamedTuple",
        "TypedDict",
        "Exception",
        "PaimonError",
        "Cancelled",
        "NotFound",
        "CommitConflict",
        "InvalidRequest",
    }
    exempt |= {"UserWarning", "DuckDB", "DuckDB.Tokenizer"}  # tables for the parser, never instantiated by us
    frozen = "frozen" in decorators or any("frozen=True" in ast.unparse(d) for d in node.decorator_list)
    # a mixin, or a text of its own class, whose `__slots__` is empty
    is_stateless = any(ast.unparse(statement) == "__slots__ = ()" for statement in node.body)
    return frozen or is_stateless or bool(bases & exempt)


def test_domain_classes_are_frozen() -> None:
    thawed = [
        f"{path}: {node.name}"
        for path in modules(PACKAGE / "domain", PACKAGE / "capture")
        for node in classes(path)
        if not is_value_or_protocol(node) and node.name not in STATE_MACHINES
    ]
    assert thawed == []


# Columnar modules whose row-wise rule has another name: it runs in production, or serves several modules.
ROW_WISE = {
    "capture/values_columnar": "rows_reference",
    "domain/bucket/bucket_columnar": "bucket_rule",
    "domain/lsm/record_expiry_columnar": "record_expiry",
    "domain/manifest/file_texts_columnar": "file_texts",
    "domain/merge/aggregate/functions_columnar": "foldings",
    "domain/merge/aggregate/reduce_columnar": "foldings",
    "domain/merge/aggregate/steps_columnar": "foldings",
    "domain/predicate/evaluate_columnar": "evaluate_row",
    "domain/predicate/pruning_columnar": "prune_file",
    "domain/row/row_hash_columnar": "row_hash",
}


def test_columnar_rules_have_their_reference() -> None:
    columnar = [path for path in modules(PACKAGE / "domain", PACKAGE / "capture") if path.stem.endswith("_columnar")]
    assert len(columnar) > 15
    for path in columnar:
        name = str(path.relative_to(PACKAGE).with_suffix(""))
        reference = ROW_WISE.get(name, path.stem.replace("_columnar", "_reference"))
        assert path.with_name(f"{reference}.py").exists(), f"{path} has no reference next to it"


@cache
def imported_modules(path: Path) -> set[str]:
    """Return each module that a module imports, and each name that it imports from one, with their packages."""
    nodes = list_nodes(path)
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_imports_have_no_cycle() -> None:
    """Imports inside functions and for types alone count."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in modules(PACKAGE)}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    imports = {}
    for name, path in paths.items():
        found = imported_modules(path) & paths.keys()
        imports[name] = {module for module in found if not any(other.startswith(f"{module}.") for other in found)}
    assert len(list(TopologicalSorter(imports).static_order())) == len(paths)  # raises CycleError


def test_references_are_for_tests() -> None:
    used = [
        f"{path} imports {name}"
        for path in modules(PACKAGE)
        if PACKAGE / "testing" not in path.parents and not path.stem.endswith("_reference")
        for name in sorted(imported_modules(path))
        if name.startswith("paimon.") and name.endswith("_reference")
    ]
    assert used == []


def test_ports_stay_small() -> None:
    for path in modules(PACKAGE / "ports"):
        for node in classes(path):
            if "Protocol" in {ast.unparse(b) for b in node.bases}:
                verbs = [n for n in node.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
                assert len(verbs) <= 8, f"{node.name} has {len(verbs)} methods"


# What changes the whole process, as source text: modules, writes of the environment, and setters of libraries.
PROCESS_EFFECTS = re.compile(
    r"^\s*(?:import|from) (?:gc|ctypes|signal)\b|os\.environ(?:\[[^]]+\] *=[^=]|\.(?:setdefault|update|pop)|.*\|=)"
    r"|os\.(?:putenv|unsetenv|umask|register_at_fork)\b|pa\.set_|\.set_memory_pool\(|locale\.setlocale"
    r"|sys\.(?:setrecursionlimit|setswitchinterval|modules\[[^]]+\] *=[^=])"
    r"|^\s*warnings\.(?:simplefilter|filterwarnings)",
    re.MULTILINE,
)
# The programs of the package change their own process: the command line, and the simulation.
PROGRAMS = ("cli/", "testing/simulation/", "testing/conformance/__main__.py")
CHANGING = {"adapters/process_effects.py", "testing/contracts/effects.py"}
"""The module of the effects, and the contract that gives it a collector in each state."""


def test_one_module_changes_the_process() -> None:
    found = {
        str(path.relative_to(PACKAGE)) for path in modules(PACKAGE) if PROCESS_EFFECTS.search(path.read_text("utf8"))
    }
    assert {name for name in found if not name.startswith(PROGRAMS)} == CHANGING


def test_port_methods_state_their_contract() -> None:
    lacking = []
    for path in modules(PACKAGE / "ports"):
        for node in classes(path):
            if "Protocol" not in {ast.unparse(b) for b in node.bases}:
                continue
            for method in (n for n in node.body if isinstance(n, ast.FunctionDef)):
                doc, name = ast.get_docstring(method) or "", f"{node.name}.{method.name}"
                is_property = "property" in {ast.unparse(d) for d in method.decorator_list}
                is_special = method.name.startswith("__") and method.name != "__call__"
                has_result = method.returns is not None and ast.unparse(method.returns) != "None"
                wanted = {"Parameters"} if len(method.args.args + method.args.posonlyargs) > 1 else set()
                wanted |= {"Returns|Yields"} if has_result else set()
                sections = set() if is_property or is_special else wanted
                if not doc or not all(re.search(rf"^(?:{s})\n-+$", doc, re.MULTILINE) for s in sections):
                    lacking.append(name)
    assert lacking == []


MAPS = ("ARCHITECTURE.md", "docs/explanation/inside-the-library.md")
"""The pages that describe the code; the paths of CONTRIBUTING.md are checked with its walk-throughs."""


def test_paths_that_the_maps_name_exist() -> None:
    folders = re.compile(r"`((?:paimon|tests|docs|benchmarks|examples)/[\w./-]*)`")
    named = {path for page in MAPS for path in folders.findall((ROOT / page).read_text("utf8"))}
    missing = [path for path in sorted(named) if not (ROOT / path).exists()]
    assert len(named) > 50 and not missing, missing
    assert len((ROOT / MAPS[0]).read_text("utf8").splitlines()) <= 100


BROAD = {
    "adapters/guarded.py: translate_errors": "adapters of others raise errors of their own",
    "adapters/files/fsspec_files.py: _translate_errors": "clients of storages raise errors of their own",
    "adapters/files/request_retry.py: send": "clients of storages raise errors of their own",
    "display/notebook.py: read_or_explain": "a notebook shows a broken table, whatever is broken",
    "domain/undo.py: undo_on_failure": "what a failed block began is undone, and its error is raised",
    "operations/commit/commit.py: call_callbacks": "callbacks of users may raise anything; the commit is published",
    "testing/interleaving.py: catch_outcome": "an actor of a test may end with any error, which is its outcome",
}
"""Where every error is caught, and why. Elsewhere an except names the classes that it expects."""


def test_every_error_is_caught_at_named_borders_only() -> None:
    found = []
    for path in modules(PACKAGE):
        for function in list_nodes(path):
            if isinstance(function, ast.FunctionDef):
                place = f"{path.relative_to(PACKAGE)}: {function.name}"
                found += [place for node in ast.walk(function) if catches_everything(node)]
    assert sorted(found) == sorted(BROAD)
    assert len(BROAD) <= 7


def catches_everything(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        caught = [node.type] if not isinstance(node.type, ast.Tuple) else node.type.elts
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        caught = list(node.args)
    else:
        return False
    return any(kind is None or ast.unparse(kind) in ("Exception", "BaseException") for kind in caught)


LONGEST_FUNCTION = 60


def test_functions_fit_on_one_screen() -> None:
    long = []
    for path in modules(PACKAGE):
        for node in list_nodes(path):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION:
                long.append(f"{path.relative_to(PACKAGE)}: {node.name}")
    assert long == [], "move steps into functions; the docstring counts, too"
