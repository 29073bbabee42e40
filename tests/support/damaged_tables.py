"""Damaged tables: one stored file at a time is cut, flipped, zeroed, swapped or nested, and read in every way.

A read returns the correct rows, a typed error, or a different result if the format cannot detect the damage. It never
ends with a bare error, a hang or a dead process. Readers run in processes of their own with limits of time and
memory.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import re
import resource
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from attrs import evolve, frozen

import paimon
from paimon.domain.errors import PaimonError
from support.consistent_damage import restructure_file, update_recorded_sizes

PATIENCE_SECONDS = 5.0
REPLACED_VALUES = "restructured"
_MEMORY_BYTES = 3 * 2**30
"""Address space of a reader: what it maps anyhow, and a good deal more than a small table needs."""
DDL = "k INT NOT NULL, s STRING, d DECIMAL(10, 2), a ARRAY<INT>, r ROW<x INT>, f DOUBLE, t TIMESTAMP(3), b BYTES"
TABLES: dict[str, dict[str, str]] = {
    "parquet": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "orc": {"bucket": "1", "file.format": "orc", "changelog-producer": "input", "write-only": "true"},
    "avro": {"bucket": "1", "file.format": "avro", "write-only": "true"},
}


def build(home: Path) -> None:
    """The sound tables: commits, a tag, a consumer, vectors, changelogs."""
    catalog = paimon.connect(home)
    catalog.create_database("d")
    for name, options in TABLES.items():
        table = catalog.create_table(f"d.{name}", DDL, primary_keys=["k"], options=options)
        for start in (0, 20, 10):
            rows = range(start, start + 30)
            table.write(
                [
                    {"k": i, "s": f"s{i}", "d": i, "a": [i, None], "r": {"x": i}, "f": i / 2, "t": None, "b": b"x" * i}
                    for i in rows
                ]
            )
        table.tags.create("kept", 1)
        table.consumers.reset("reader", 2)


@frozen
class Damage:
    """The damage, the file and the table."""

    table: str
    file: str
    kind: str
    amount: int

    @property
    def what(self) -> str:
        """The kind of file, from its name."""
        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27,}|[0-9]+", "#", self.file)


def draw_damages(home: Path, seed: int) -> Iterator[Damage]:
    """Endlessly: any file, any damage; kinds of files alternately, so that the few among many are not left out."""
    chance = random.Random(seed)
    by_kind: dict[tuple[str, str], list[str]] = {}
    for name in TABLES:
        root = home / "d.db" / name
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            file = str(path.relative_to(root))
            by_kind.setdefault((name, Damage(name, file, "", 0).what), []).append(file)
    kinds = sorted(by_kind)
    while True:
        chance.shuffle(kinds)
        for name, what in kinds:
            file = chance.choice(by_kind[name, what])
            yield Damage(name, file, chance.choice(sorted(_DAMAGES)), chance.randrange(2**31))


def draw_value_replacements(home: Path, seed: int) -> Iterator[Damage]:
    """Endlessly: edits of the files that hold members or records, kinds of files alternately."""
    containers = ("snapshot/snapshot-", "schema/", "tag/", "consumer/", "manifest/")
    chosen = (d for d in draw_damages(home, seed) if d.file.startswith(containers))
    return (evolve(damage, kind=REPLACED_VALUES) for damage in chosen)


def done(home: Path, damage: Damage, target: Path) -> Path:
    """A copy of the table with the damage."""
    root = Path(shutil.copytree(home / "d.db" / damage.table, target / "d.db" / damage.table))
    path = root / damage.file
    data = path.read_bytes()
    edit = restructure_file if damage.kind == REPLACED_VALUES else _DAMAGES[damage.kind]
    path.write_bytes(edit(data, random.Random(damage.amount), path))
    if damage.kind == REPLACED_VALUES:
        update_recorded_sizes(root)
    return root


def _cut_file(data: bytes, chance: random.Random, path: Path) -> bytes:
    return data[: len(data) * chance.randrange(64) // 64]


def _flip_bits(data: bytes, chance: random.Random, path: Path) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 8)) if data else 0):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _zero_bytes(data: bytes, chance: random.Random, path: Path) -> bytes:
    start = chance.randrange(len(data) + 1)
    length = min(chance.choice((1, 16, 512)), len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


def _swap_file(data: bytes, chance: random.Random, path: Path) -> bytes:
    """The content of another file, of the same directory or of any."""
    near = sorted(p for p in path.parent.iterdir() if p.is_file() and p != path)
    far = sorted(p for p in path.parents[1].rglob("*") if p.is_file() and p != path)
    return chance.choice(near if near and chance.random() < 0.5 else far).read_bytes()


def _huge(data: bytes, chance: random.Random, path: Path) -> bytes:
    """A huge or negative number: replaces a number in text, or some bytes by a long varint."""
    value = chance.choice((-1, 2**31, 2**63 - 1, -(2**63), 2**64, 10**400))
    numbers = list(re.finditer(rb"-?\b[0-9]+\b", data)) if _is_text(data) else []
    if numbers:
        found = chance.choice(numbers)
        return data[: found.start()] + str(value).encode() + data[found.end() :]
    place = chance.randrange(len(data) + 1)
    varint = chance.choice((b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\x80" * 12))
    return data[:place] + varint + data[place + 5 :]


def _nest_deeply(data: bytes, chance: random.Random, path: Path) -> bytes:
    """Unlimited depth: brackets in text, a long run of one byte in other files."""
    depth = chance.choice((200, 5_000, 100_000))
    if _is_text(data):
        value = chance.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth))
        place = data.find(b":") + 1
        return data[:place] + value + b"," + data[place:] if place else value
    place = chance.randrange(len(data) + 1)
    return data[:place] + bytes([chance.randrange(256)]) * depth + data[place:]


def _grow_file(data: bytes, chance: random.Random, path: Path) -> bytes:
    return data + data[: chance.randrange(len(data) + 1)] if chance.random() < 0.5 else chance.randbytes(100) + data


def _random(data: bytes, chance: random.Random, path: Path) -> bytes:
    return chance.randbytes(len(data))


_DAMAGES: dict[str, Callable[[bytes, random.Random, Path], bytes]] = {
    "cut": _cut_file,
    "flipped": _flip_bits,
    "grown": _grow_file,
    "huge": _huge,
    "nested": _nest_deeply,
    "random": _random,
    "swapped": _swap_file,
    "zeroed": _zero_bytes,
}


def _is_text(data: bytes) -> bool:
    return data[:1] in (b"{", b"[") or data.isdigit()


def read_in_all_ways(root: Path) -> dict[str, str]:
    """The result of each way of reading: the rows as text, or the error as `!Type: message`."""
    return {name: _read_in_one_way(name, root) for name in _READS}


_READS: dict[str, Callable[[paimon.Table], object]] = {
    "latest": lambda t: t.scan().to_arrow().sort_by("k").to_pylist(),
    "filter": lambda t: t.scan(["k", "s"], where="k BETWEEN 15 AND 25 AND f > 3").to_arrow().sort_by("k").to_pylist(),
    "tag": lambda t: t.scan(tag="kept").to_arrow().sort_by("k").to_pylist(),
    "first": lambda t: t.scan(snapshot=1).to_arrow().sort_by("k").to_pylist(),
    "changes": lambda t: t.changes().to_arrow().num_rows,
    "explain": lambda t: bool(t.scan(where="k = 3").explain()),
    "history": lambda t: [s.id for s in t.snapshots()],
    "names": lambda t: (sorted(t.tags), dict(t.consumers)),
    "files": lambda t: t.system_table("files").scan().to_arrow().num_rows,
    "check": lambda t: t.maintain.check(deep=True) and None,
}


def _read_in_one_way(name: str, root: Path) -> str:
    try:
        return json.dumps(_READS[name](paimon.open_table(root)), default=str)
    except PaimonError as error:
        return f"!{type(error).__name__}: {error}"
    except MemoryError:
        return "?MemoryError"
    except Exception:  # the error that must not be raised
        return f"?{traceback.format_exc()}"


class Reader:
    """A reader process. It is killed and started again after a time limit."""

    def __init__(self) -> None:
        self._start()

    def read_in_all_ways(self, root: Path) -> dict[str, str] | str:
        """The result of each way of reading. A text if the process hung or died."""
        try:
            self._pipe.send(str(root))
            if self._pipe.poll(PATIENCE_SECONDS * len(_READS)):
                results: dict[str, str] = self._pipe.recv()
                return results
            outcome = "hangs"
        except (EOFError, OSError):
            outcome = "dies"
        self.close()
        self._start()
        return outcome

    def close(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()


def _serve(pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    while True:
        pipe.send(read_in_all_ways(Path(pipe.recv())))


@frozen
class Outcome:
    """The result of one damage."""

    damage: Damage
    judgement: str
    detail: str = ""


def check_damage(home: Path, truth: dict[str, dict[str, str]], damage: Damage, reader: Reader) -> Outcome:
    """`same`, `refused`, `unseen` (another result without an error), or a failure: `raw`, `hangs`, `dies`."""
    with tempfile.TemporaryDirectory() as place:
        root = done(home, damage, Path(place))
        results = reader.read_in_all_ways(root)
        if isinstance(results, str):
            return Outcome(damage, results)
        raw = {name: text for name, text in results.items() if text.startswith("?")}
        if raw:
            return Outcome(damage, "raw", json.dumps(raw, indent=1).replace("\\n", "\n"))
        unnamed = [text for text in results.values() if text.startswith("!") and not _names(text, root)]
        if unnamed:
            return Outcome(damage, "unnamed", unnamed[0])
        sound = truth[damage.table]
        unseen = [n for n, text in results.items() if not text.startswith("!") and text != sound[n]]
        if unseen:
            return Outcome(damage, "unseen", f"{', '.join(unseen)}: {results[unseen[0]][:200]}")
        return Outcome(damage, "refused" if any(t.startswith("!") for t in results.values()) else "same")


def _names(text: str, root: Path) -> bool:
    """Whether an error names a file or object of the table."""
    return str(root) in text or bool(re.search(r"snapshot|tag|consumer|schema|manifest|column|option", text))
