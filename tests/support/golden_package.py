"""Build the distribution `paimon-golden` of golden tables; Java can write them anew before.

    python3 dev.py golden [--java] [--output DIR]

The stored tables are those of `tests/data/golden.tar.xz`. With ``--java``, Java replays the steps of each case, and
reads the new tables: the newest rows, each snapshot, tag and branch. This library only makes the schema changes. The
version of Java's Paimon is that of `tests/interop/pom.xml`. Needs Java 17 and Maven, as the interop tests do.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import paimon
from support.canonical_rows import text
from support.golden_input import read_input
from support.golden_replay import Replay, number_steps
from support.golden_tables import ARCHIVE, golden_directory, sql
from support.java_paimon import JavaPaimon, compile_driver

ROOT = Path(__file__).resolve().parents[2]
_RETENTION = ("createTag", "deleteTag", "createBranch", "fastForward", "rollback", "consumer", "expireSnapshots")
_STEPS = ("write", "overwrite", "compact", "delete", "postponeCompact", "alter", *_RETENTION)
_ARGUMENTS = {"write": {"op", "rowsFile", "branch", "options", "user"}, "createBranch": {"op", "name", "tag"}}
"""The arguments that a replay has; other steps of this name are not replayed."""
_KINDS = {"snapshot": "scan.snapshot-id", "tag": "scan.tag-name", "branch": "branch"}


def main(arguments: list[str]) -> int:
    """Build the wheel, and return the exit code."""
    parser = argparse.ArgumentParser(prog="dev.py golden", description="build the distribution paimon-golden")
    parser.add_argument("--java", action="store_true", help="let Java write and read the tables anew")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the wheel goes (dist)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        archive = ARCHIVE
        if options.java:
            with JavaPaimon(compile_driver()) as java:
                written = list(replay_golden(java, golden_directory(), Path(folder, "golden")))
            print(f"Java wrote {len(written)} tables")
            archive = pack_golden(Path(folder, "golden"), Path(folder, "golden.tar.xz"))
        print(build_wheel(archive, options.output))
    return 0


def replay_golden(java: JavaPaimon, source: Path, target: Path, cases: Iterable[str] = ()) -> Iterator[str]:
    """Let Java write the cases that can be replayed, or some of them, to another set, and yield their names."""
    target.mkdir(parents=True)
    shutil.copy(source / "README.md", target)
    wanted = set(cases)
    for path in sorted(source.glob("*/case.json")):
        case = json.loads(path.read_text("utf8"))
        if _can_replay(case) and (not wanted or path.parent.name in wanted):
            folder = target / path.parent.name
            shutil.copytree(path.parent, folder, ignore=lambda _, names: {"table", "expected"} & {*names})
            _write_case(java, folder, case)
            _store_answers(java, path.parent / "expected", folder)
            yield folder.name


def _can_replay(case: Mapping[str, Any]) -> bool:
    """Return whether the driver can do all steps; it knows no default values of columns."""
    return (
        "steps" in case
        and not any("defaultValue" in column for column in case["schema"]["fields"])
        and all(
            step["op"] in _STEPS and step.keys() <= _ARGUMENTS.get(step["op"], step.keys()) for step in case["steps"]
        )
    )


def _write_case(java: JavaPaimon, folder: Path, case: Mapping[str, Any]) -> None:
    table, schema = folder / "table", case["schema"]
    keys = {"primary_keys": schema["primaryKeys"], "partition_keys": schema["partitionKeys"]}
    fields = {f["name"]: f["type"] for f in schema["fields"]}
    java.create(table, fields, options=schema["options"], **keys)
    for number, step in number_steps(case["steps"]):
        user, options = step.get("user", case["commitUser"]), dict(step.get("options", {}))
        match step["op"]:
            case "write" | "overwrite":
                rows = read_input(folder / step["rowsFile"])
                options |= {"branch": step["branch"]} if "branch" in step else {}
                java.write(
                    table, rows, identifier=number, user=user,
                    overwrite=step.get("partition"), options=options,
                )  # fmt: skip
            case "compact" if schema["options"].get("bucket", "-1") == "-1" and not schema["primaryKeys"]:
                java.compact_append(table, identifier=number)
            case "compact":
                java.write(table, [], identifier=number, user=user, compact=True, options={"write-only": "false"})
            case "delete":
                column = _find_column(step["where"])
                found = paimon.open_table(table).scan([column], where=sql(step["where"])).to_arrow()
                java.delete(table, column, found[column].to_pylist(), identifier=number)
            case "postponeCompact":
                java.compact_postponed(table, step["buckets"], identifier=number, user=user)
            case "alter":
                Replay(folder, table).alter(step, number)
            case _:
                _maintain(java, table, step)


def _find_column(conditions: list[Any]) -> str:
    first: list[Any] = conditions[0]
    return _find_column(first[1:]) if first[0] == "or" else str(first[0])


def _maintain(java: JavaPaimon, table: Path, step: Mapping[str, Any]) -> None:
    request: dict[str, Any] = {key: step[key] for key in ("name", "snapshot", "tag") if key in step}
    match step["op"]:
        case "createTag":
            java.retention(table, "create-tag", **{"snapshot": int(java.snapshot(table)["id"])} | request)
        case "createBranch" if "tag" not in step:
            paimon.open_table(table).branches.create(step["name"])
        case "consumer":
            java.retention(table, "consumer", name=step["id"], next=step["nextSnapshot"])
        case "expireSnapshots":
            java.retention(table, "expire", min=step["retainMin"], max=step["retainMax"])
        case other:
            verbs = {"deleteTag": "delete-tag", "createBranch": "create-branch", "fastForward": "fast-forward"}
            java.retention(table, verbs.get(other, other), **request)


def _store_answers(java: JavaPaimon, stored: Path, folder: Path) -> None:
    """Write the rows that Java reads, for the same reads as those that are stored of the case."""
    (folder / "expected").mkdir()
    names = [path.stem for path in stored.glob("*.jsonl")]
    for name in names:
        kind, _, value = name.partition("-")
        if name != "latest" and kind not in _KINDS:
            continue
        if kind == "snapshot" and not (folder / "table" / "snapshot" / name).exists():
            continue
        rows = java.read(folder / "table", options={_KINDS[kind]: value} if value else None)
        lines = sorted(map(text, rows))
        (folder / "expected" / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf8")


def pack_golden(source: Path, archive: Path) -> Path:
    """Write a set as an archive, the same bytes for the same files."""

    def reset(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        return member

    with tarfile.open(archive, "w:xz") as packed:
        for path in sorted(source.iterdir()):
            packed.add(path, path.name, filter=reset)
    return archive


def build_wheel(archive: Path, output: Path) -> Path:
    """Build the wheel of an archive, and return its path."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "packages", "golden")
        shutil.copytree(ROOT / "packages" / "golden", home)
        (Path(folder) / "tests" / "data").mkdir(parents=True)
        shutil.copy(archive, Path(folder) / "tests" / "data" / ARCHIVE.name)
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps"]
        subprocess.run([*command, "--wheel-dir", str(output), str(home)], check=True)
    return next(output.glob("paimon_golden-*.whl"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
