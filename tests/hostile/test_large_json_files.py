"""Large JSON files: each kind has a limit of bytes. Memory and time of smaller files are proportional to their size.

Every case runs in a process of its own, whose memory is measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.case_lists import mark_nightly, mark_products
from support.warm_processes import run_code

import paimon
from paimon.domain.json_text import DETAIL_FILE, SCHEMA_FILE, SNAPSHOT_FILE, STATISTICS_FILE, DocumentKind

MIB = 1 << 20
READ = """
import json, sys, time
import paimon
from paimon.domain.errors import PaimonError
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024
root, how = sys.argv[1:]
reads = {
    "rows": lambda: paimon.open_table(root).scan().to_arrow(),
    "tag": lambda: paimon.open_table(root).scan(tag="t").to_arrow(),
    "consumers": lambda: paimon.open_table(root + "$consumers").scan().to_arrow(),
    "statistics": lambda: paimon.open_table(root + "$statistics").scan().to_arrow(),
}
paimon.open_table(root + "_sound").scan().to_arrow()
before, started = peak(), time.process_time()
try:
    reads[how]()
    message = ""
except PaimonError as error:
    message = type(error).__name__ + ": " + str(error)
print(json.dumps([peak() - before, time.process_time() - started, message]))
"""

FILES: dict[str, tuple[str, str, DocumentKind]] = {
    "schema": ("schema/schema-0", "rows", SCHEMA_FILE),
    "snapshot": ("snapshot/snapshot-1", "rows", SNAPSHOT_FILE),
    "tag": ("tag/tag-t", "tag", SNAPSHOT_FILE),
    "consumer": ("consumer/consumer-c", "consumers", DETAIL_FILE),
    "statistics": ("statistics/s", "statistics", STATISTICS_FILE),
    "hint": ("snapshot/LATEST", "rows", DETAIL_FILE),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    for name in ("t", "t_sound"):
        table = catalog.create_table(f"d.{name}", "k INT", options={"write-only": "true"})
        table.write({"k": [1, 2, 3]})
    root = tmp_path / "d.db" / "t"
    (root / "statistics").mkdir()
    (root / "statistics" / "s").write_text('{"snapshotId": 1, "schemaId": 0, "colStats": {}}')
    snapshot = root / "snapshot" / "snapshot-1"
    snapshot.write_text(json.dumps(json.loads(snapshot.read_text()) | {"statistics": "s"}))
    table = paimon.open_table(root)
    table.tags.create("t")
    table.consumers.reset("c", 1)
    return root


def read(root: Path, how: str) -> tuple[int, float, str]:
    """Mebibytes at the peak above those of a sound read, CPU seconds, and the error."""
    done = run_code(READ, str(root), how)
    assert done.code == 0, done.errors
    peak, seconds, message = json.loads(done.output)
    return peak, seconds, message


def with_member(path: Path, value: bytes, size: int) -> None:
    """Add a member to the document: a list of as many of these values as fit."""
    sound = json.dumps(json.loads(path.read_bytes()) | {"colStats": [], "added": "HERE"}).encode()
    room = size - len(sound)
    path.write_bytes(sound.replace(b'"HERE"', b"[" + value * (room // len(value)) + b"0]"))


VALUES = {"lists": b"[],", "objects": b"{},", "objects in objects": b'{"":{}},', "fractions": b"1.5,", "texts": b'"",'}


@pytest.mark.parametrize("kind", mark_nightly(FILES, always=["schema", "snapshot", "hint"]))
def test_sixty_megabytes_are_refused_before_they_are_read(root: Path, kind: str) -> None:
    name, how, _ = FILES[kind]
    if kind == "hint":
        (root / name).write_bytes(b"1" * (60 * MIB))
    else:
        with_member(root / name, b"{},", 60 * MIB)
    check_refused(root, name, how, kind)


@pytest.mark.parametrize("kind", mark_nightly(FILES, always=["snapshot", "hint"]))
def test_a_sparse_file_is_refused_at_once(root: Path, kind: str) -> None:
    name, how, _ = FILES[kind]
    with (root / name).open("r+b") as file:
        file.truncate(900 * MIB)
    check_refused(root, name, how, kind)


def check_refused(root: Path, name: str, how: str, kind: str) -> None:
    size = (root / name).stat().st_size
    peak, seconds, message = read(root, how)
    if kind == "hint":
        assert message == ""
    else:
        assert message.startswith("CorruptTable")
        assert name in message
        assert str(size) in message
        assert str(FILES[kind][2].max_bytes) in message
    assert peak < 20
    assert seconds < 2


@pytest.mark.parametrize(("values", "kind"), mark_products(VALUES, ["snapshot", "schema"]))
def test_documents_within_the_byte_limit_have_a_limit_of_values(root: Path, values: str, kind: str) -> None:
    """The largest file: as many values as the limit allows, of the kind that needs most memory."""
    name, how, limit = FILES[kind]
    with_member(root / name, VALUES[values], limit.max_bytes - 1000)
    peak, seconds, message = read(root, how)
    assert "values; the limit of" in message
    assert (peak < 2 * limit.max_bytes // MIB + 20, seconds < 2) == (True, True)


MOST: dict[str, Callable[[int], bytes]] = {
    "members of a name each": lambda count: b",".join(b'"%x":1.5' % i for i in range(count)),
    "objects of a member": lambda count: b'"added":[' + b",".join([b'{"":1.5}'] * (count // 2)) + b"]",
    "a long text": lambda count: '"added":"\N{GRINNING FACE}'.encode() + b"x" * (20 * count) + b'"',
}


@pytest.mark.parametrize(("most", "kind"), mark_products(MOST, ["snapshot", "schema"]))
def test_the_most_that_a_document_may_hold_takes_a_bounded_memory(root: Path, most: str, kind: str) -> None:
    name, how, limit = FILES[kind]
    sound = (root / name).read_bytes().rstrip()
    data = sound[:-1] + b"," + MOST[most](limit.max_values - 100) + b"}"
    assert len(data) <= limit.max_bytes
    (root / name).write_bytes(data)
    peak, seconds, message = read(root, how)
    assert message == ""
    assert peak < 16 * limit.max_bytes // MIB
    assert seconds < 8
