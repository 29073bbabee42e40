"""The golden tables that Java wrote, with the rows that Java reads; unpacked once for all test processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "golden.tar.xz"


def golden_directory() -> Path:
    """The directory of the unpacked cases. The first process creates it with an atomic rename."""
    digest = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]
    home = Path(tempfile.gettempdir()) / f"paimon-golden-{os.getuid()}-{digest}"
    if not home.exists():
        fresh = Path(tempfile.mkdtemp(prefix="paimon-golden-new-"))
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(fresh, filter="data")
        try:
            fresh.rename(home)
        except OSError:
            shutil.rmtree(fresh)
    return home


@frozen
class GoldenRead:
    """One read of one case: the request, and the file with Java's result."""

    case: str
    name: str
    kind: str
    arguments: dict[str, Any]
    expected: Path

    @property
    def table(self) -> Path:
        return self.expected.parents[1] / "table"

    def rows(self) -> list[str]:
        """The expected rows as canonical JSON, sorted."""
        return sorted(self.expected.read_text("utf8").splitlines())


def golden_reads(home: Path) -> Iterator[GoldenRead]:
    """All reads of all cases."""
    for case in sorted(p.parent for p in home.glob("*/case.json")):
        asked = {r["name"]: r for r in json.loads((case / "case.json").read_text("utf8")).get("reads", [])}
        for expected in sorted((case / "expected").glob("*.jsonl")):
            read = _read_of(case.name, expected, asked)
            if read is not None:
                yield read


def _read_of(case: str, expected: Path, asked: dict[str, Any]) -> GoldenRead | None:
    stem = expected.stem
    what, _, name = stem.partition("-")
    if stem == "latest":
        return GoldenRead(case, stem, "rows", {}, expected)
    if stem == "changelog":
        return GoldenRead(case, stem, "changes", {}, expected)
    if what == "snapshot":
        return GoldenRead(case, stem, "rows", {"snapshot": int(name)}, expected)
    if what in ("tag", "branch"):
        return GoldenRead(case, stem, "rows", {what: name}, expected)
    if what == "read" and name in asked:
        read = asked[name]
        arguments: dict[str, Any] = {"where": sql(read["where"])} if read.get("where") else {}
        arguments |= {"columns": read["project"]} if read.get("project") else {}
        arguments |= {"options": read["options"]} if read.get("options") else {}
        arguments |= {"branch": read["branch"]} if read.get("branch") else {}
        kind = f"system:{read['system']}" if read.get("system") else "rows"
        return GoldenRead(case, stem, kind, arguments, expected)
    return None


def sql(conditions: list[Any]) -> str:
    """A case's conditions as predicate text."""
    return " AND ".join(_condition(c) for c in conditions)


def _condition(condition: list[Any]) -> str:
    if condition[0] == "or":
        return f"({' OR '.join(_condition(c) for c in condition[1:])})"
    column, operator, *literals = condition
    if operator in ("in", "notIn"):
        return f"{column} {'NOT IN' if operator == 'notIn' else 'IN'} ({', '.join(map(_literal, literals[0]))})"
    if operator == "between":
        low, high = literals[0] if isinstance(literals[0], list) else literals
        return f"{column} BETWEEN {_literal(low)} AND {_literal(high)}"
    if operator == "startsWith":
        return f"{column} LIKE {_literal(literals[0] + '%')}"
    if operator in ("isNull", "isNotNull"):
        return f"{column} IS {'NOT ' if operator == 'isNotNull' else ''}NULL"
    return f"{column} {'<>' if operator == '!=' else operator} {_literal(literals[0])}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else str(value)
