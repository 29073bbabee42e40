"""Compare stores for the key index of cross-partition tables: bulk load, lookups and updates of many keys.

`python benchmarks/key_stores.py` measures every store in a process of its own. `--stores` selects some. RocksDB and
LMDB need `pip install rocksdict lmdb`; DuckDB needs the extra `duckdb`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.types.data_types import BigIntType, DataField, VarCharType
from paimon.operations.buckets.block_key_store import BlockKeyStore

Places = npt.NDArray[np.int64]
_LOOKUP_ROWS = 1_000_000
_LOAD_ROWS = 1_000_000
_MEMORY_BYTES = 512 << 20
_NAME = "k"


class Store(Protocol):
    """A store under measurement; keys are a column of numbers or texts."""

    def load(self, parts: list[tuple[pa.Array, Places]]) -> None:
        """Add distinct keys in bulk."""

    def find(self, keys: pa.Array) -> Places:
        """Return the places of keys."""

    def put(self, keys: pa.Array, places: Places) -> None:
        """Replace the places of keys."""


def to_bytes(keys: pa.Array) -> list[bytes]:
    """Return keys as bytes that sort as the keys do."""
    if pa.types.is_integer(keys.type):
        packed = np.asarray(keys).astype(">i8").tobytes()
        return [packed[at : at + 8] for at in range(0, len(packed), 8)]
    return [bytes(key) for key in keys.cast(pa.binary()).to_pylist()]


def to_place_bytes(places: Places) -> list[bytes]:
    """Return each place as eight bytes."""
    packed = places.astype("<i8").tobytes()
    return [packed[at : at + 8] for at in range(0, len(packed), 8)]


class Blocks:
    """The store of this library: Arrow blocks with lookup hashes."""

    def __init__(self, folder: str, kind: str) -> None:
        field = DataField(0, _NAME, BigIntType() if kind == "int64" else VarCharType(2147483647))
        self._store = BlockKeyStore(LocalTempStore(folder), (field,), _MEMORY_BYTES, None)

    def load(self, parts: list[tuple[pa.Array, Places]]) -> None:
        """Add keys."""
        self._store.load(((pa.record_batch({_NAME: keys}), places) for keys, places in parts), 0)

    def find(self, keys: pa.Array) -> Places:
        """Return places."""
        return self._store.find(pa.record_batch({_NAME: keys}))

    def put(self, keys: pa.Array, places: Places) -> None:
        """Replace places."""
        self._store.put(pa.record_batch({_NAME: keys}), places, 0)


class RocksDb:
    """RocksDB through rocksdict, with a bulk load of sorted files and batches of lookups."""

    def __init__(self, folder: str, kind: str) -> None:
        import rocksdict

        self._lib, self._folder = rocksdict, folder
        self._options = rocksdict.Options(raw_mode=True)
        self._options.create_if_missing(True)
        self._db = rocksdict.Rdict(f"{folder}/db", self._options)

    def load(self, parts: list[tuple[pa.Array, Places]]) -> None:
        """Write one sorted file, and ingest it."""
        keys = [key for part, _ in parts for key in to_bytes(part)]
        places = [place for _, part in parts for place in to_place_bytes(part)]
        writer = self._lib.SstFileWriter(options=self._options)
        writer.open(f"{self._folder}/load.sst")
        for key, place in sorted(zip(keys, places, strict=True)):
            writer[key] = place
        writer.finish()
        self._db.ingest_external_file([f"{self._folder}/load.sst"])

    def find(self, keys: pa.Array) -> Places:
        """Look up a list of keys."""
        found = self._db[to_bytes(keys)]
        return np.frombuffer(b"".join(found), "<i8")

    def put(self, keys: pa.Array, places: Places) -> None:
        """Write one batch."""
        batch = self._lib.WriteBatch(raw_mode=True)
        for key, place in zip(to_bytes(keys), to_place_bytes(places), strict=True):
            batch[key] = place
        self._db.write(batch)


class Lmdb:
    """LMDB, with appended sorted keys and batches of lookups."""

    def __init__(self, folder: str, kind: str) -> None:
        import lmdb

        self._db = lmdb.open(f"{folder}/db", map_size=1 << 40, sync=False, metasync=False, lock=False)

    def load(self, parts: list[tuple[pa.Array, Places]]) -> None:
        """Append the sorted keys."""
        keys = [key for part, _ in parts for key in to_bytes(part)]
        places = [place for _, part in parts for place in to_place_bytes(part)]
        with self._db.begin(write=True) as change:
            change.cursor().putmulti(sorted(zip(keys, places, strict=True)), append=True)

    def find(self, keys: pa.Array) -> Places:
        """Look up sorted keys with one cursor, and restore their order."""
        asked = to_bytes(keys)
        with self._db.begin() as view:
            found = dict(view.cursor().getmulti(sorted(asked)))
        return np.frombuffer(b"".join([found[key] for key in asked]), "<i8")

    def put(self, keys: pa.Array, places: Places) -> None:
        """Write one transaction."""
        with self._db.begin(write=True) as change:
            change.cursor().putmulti(sorted(zip(to_bytes(keys), to_place_bytes(places), strict=True)))


class Sqlite:
    """SQLite of the standard library: a table without row numbers, lookups by a join with the requested keys."""

    def __init__(self, folder: str, kind: str) -> None:
        self._db = sqlite3.connect(f"{folder}/db", isolation_level=None)
        for text in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-262144", "temp_store=MEMORY"):
            self._db.execute(f"PRAGMA {text}")
        self._type = "INTEGER" if kind == "int64" else "TEXT"
        self._db.execute(f"CREATE TABLE places (k {self._type} PRIMARY KEY, place INTEGER) WITHOUT ROWID")

    def load(self, parts: list[tuple[pa.Array, Places]]) -> None:
        """Insert the sorted keys."""
        rows = sorted(zip([k for p, _ in parts for k in p.to_pylist()], [v for _, p in parts for v in p.tolist()],
                          strict=True))  # fmt: skip
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO places VALUES (?, ?)", rows)
        self._db.execute("COMMIT")

    def find(self, keys: pa.Array) -> Places:
        """Join the requested keys with the table."""
        self._db.execute(f"CREATE TEMP TABLE asked (k {self._type})")
        self._db.executemany("INSERT INTO asked VALUES (?)", [(key,) for key in keys.to_pylist()])
        query = "SELECT p.place FROM asked a LEFT JOIN places p ON a.k = p.k ORDER BY a.rowid"
        found = np.array(self._db.execute(query).fetchall(), np.int64)[:, 0]
        self._db.execute("DROP TABLE asked")
        return found

    def put(self, keys: pa.Array, places: Places) -> None:
        """Replace rows in one transaction."""
        self._db.execute("BEGIN")
        self._db.executemany("REPLACE INTO places VALUES (?, ?)", zip(keys.to_pylist(), places.tolist(), strict=True))
        self._db.execute("COMMIT")


class DuckDb:
    """DuckDB: a table in a file, lookups by a hash join with Arrow data, updates by delete and insert."""

    def __init__(self, folder: str, kind: str) -> None:
        import duckdb

        self._db: Any = duckdb.connect(f"{folder}/db")
        self._db.execute("SET memory_limit='512MB'; SET threads=1; SET preserve_insertion_order=false")
        self._db.execute(f"CREATE TABLE places (k {'BIGINT' if kind == 'int64' else 'VARCHAR'}, place BIGINT)")

    def load(self, parts: list[tuple[pa.Array, Places]]) -> None:
        """Insert the batches."""
        for keys, places in parts:
            self._insert(keys, places)

    def find(self, keys: pa.Array) -> Places:
        """Join the requested keys with the table."""
        self._db.register("asked", pa.table({"k": keys, "n": np.arange(len(keys))}))
        found = self._db.sql("SELECT n, place FROM asked JOIN places USING (k)").to_arrow_table()
        places = np.full(len(keys), -1, np.int64)
        places[np.asarray(found["n"])] = np.asarray(found["place"])
        return places

    def put(self, keys: pa.Array, places: Places) -> None:
        """Delete and insert."""
        self._db.register("asked", pa.table({"k": keys}))
        self._db.execute("DELETE FROM places WHERE k IN (SELECT k FROM asked)")
        self._insert(keys, places)

    def _insert(self, keys: pa.Array, places: Places) -> None:
        self._db.register("part", pa.table({"k": keys, "place": places}))
        self._db.execute("INSERT INTO places SELECT k, place FROM part")


STORES: dict[str, Callable[[str, str], Store]] = {
    "blocks": Blocks, "rocksdict": RocksDb, "lmdb": Lmdb, "sqlite": Sqlite, "duckdb": DuckDb,
}  # fmt: skip


def make_keys(rows: int, kind: str) -> pa.Array:
    """Return distinct keys in no order."""
    numbers = pa.array(np.random.default_rng(1).permutation(rows))
    if kind == "int64":
        return numbers
    import pyarrow.compute as pc

    texts = numbers.cast(pa.string())
    return pc.binary_join_element_wise("customer", pc.utf8_lpad(texts, 12, "0"), "-")


def measure(name: str, kind: str, rows: int) -> dict[str, Any]:
    """Load, look up (in large and small batches) and update keys.

    Parameters
    ----------
    name, kind : str
        The store, and the type of the keys.
    rows : int
        The number of keys.

    Returns
    -------
    dict
        CPU and wall seconds of each step, peak memory above that of the keys, and disk.
    """
    folder = tempfile.mkdtemp(prefix="key-stores-")
    keys, places = make_keys(rows, kind), np.arange(rows)
    asked = [keys.slice(at, _LOOKUP_ROWS) for at in range(0, rows, _LOOKUP_ROWS)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = STORES[name](folder, kind)
    result: dict[str, Any] = {"store": name, "key": kind, "rows": rows}
    parts = [(keys.slice(at, _LOAD_ROWS), places[at : at + _LOAD_ROWS]) for at in range(0, rows, _LOAD_ROWS)]
    result["load"] = _time(lambda: store.load(parts))
    result["disk_mib"] = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file()) >> 20
    result["find"] = _time(lambda: [_check(store.find(part), n * _LOOKUP_ROWS) for n, part in enumerate(asked)])
    small = [keys.slice(at, 1_000) for at in range(0, 100_000, 1_000)]
    result["small"] = _time(lambda: [store.find(part) for part in small])
    result["put"] = _time(lambda: store.put(keys.slice(rows // 2, rows // 10), -places[: rows // 10]))
    result["memory_mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    shutil.rmtree(folder, ignore_errors=True)
    return result


def _check(found: Places, first: int) -> None:
    if found[0] != first or found[-1] != first + len(found) - 1:
        raise AssertionError("a lookup returned the wrong place")


def _time(work: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return round(time.process_time() - cpu, 2), round(time.perf_counter() - wall, 2)


def main() -> None:
    """Measure each store in its own process, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", default="int64,text")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one, given.rows)))
        return
    steps = " | ".join(f"{step} CPU (wall) s" for step in ("Load", "Lookups", "Small lookups", "Updates"))
    print(f"| Store | Key | {steps} | Memory MiB | Disk MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in given.keys.split(","):
        for name in given.stores.split(","):
            command = [sys.executable, __file__, "--rows", str(given.rows), "--one", name, kind]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
            if done.returncode:
                print(f"| {name} | {kind} | {done.stderr.strip().splitlines()[-1]} |")
                continue
            r = json.loads(done.stdout)
            times = " | ".join(f"{r[part][0]} ({r[part][1]})" for part in ("load", "find", "small", "put"))
            print(f"| {name} | {kind} | {times} | {r['memory_mib']} | {r['disk_mib']} |", flush=True)


if __name__ == "__main__":
    main()
