"""Draw the diagrams of `docs/explanation/` from tables that this script builds.

Each picture shows what the library wrote or returned: the script makes a small table in a temporary directory, reads
its metadata and rows, and draws them as SVG. Random names of files become numbers, so that each run draws the same:

    python examples/draw_explanations.py            # writes docs/explanation/*.svg
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from drawing import Drawing
from stored_metadata import Metadata, read_metadata

import paimon

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "explanation"


def create_table(folder: Path, columns: str, options: Mapping[str, str], **more: Any) -> paimon.Table:
    """Create the table `shop.orders` in a warehouse of its own.

    Parameters
    ----------
    folder : Path
        Directory of the warehouses.
    columns : str
        Columns as SQL.
    options : mapping of str to str
        Table options in addition to one bucket.
    **more : object
        Further arguments of `Catalog.create_table`.

    Returns
    -------
    paimon.Table
        The empty table.
    """
    catalog = paimon.connect(tempfile.mkdtemp(dir=folder))
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", columns, options={"bucket": "1", **options}, **more)


def list_files(table: paimon.Table) -> list[dict[str, Any]]:
    """Return the live data files of a table, as the system table `files` lists them."""
    rows = table.system_table("files").scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["level"], -row["max_sequence_number"], row["min_key"]))


def key_of(text: str) -> int:
    """Return the number in a bound of the system table `files`, such as `[7]`."""
    return int(text.strip("[]"))


# What is a table


def draw_table(folder: Path) -> str:
    """Draw the snapshots, manifest lists, manifests and data files of a table after two writes and a compaction."""
    options = {"write-only": "true", "manifest.compression": "none"}
    more = {"primary_keys": ["id", "day"], "partition_keys": ["day"]}
    table = create_table(folder, "id INT NOT NULL, day STRING NOT NULL, amount INT", options, **more)
    table.write([{"id": 1, "day": "mon", "amount": 10}, {"id": 2, "day": "tue", "amount": 20}])
    table.write([{"id": 1, "day": "mon", "amount": 15}])
    table.compact(full=True, where="day = 'mon'")
    root = Path(table.location.removeprefix("file://"))
    drawing = Drawing(900, 470, "Snapshots, manifest lists, manifests and data files of a table")
    heads = ("Snapshot", "Manifest list", "Manifest", "Data file")
    columns = (20, 200, 430, 640)
    for x, head in zip(columns, heads, strict=True):
        drawing.text(x, 24, head, "title")
    metadata = read_metadata(root)
    draw_manifests(drawing, metadata)
    live = {Path(row["file_path"]).name for row in list_files(table)}
    for name, (number, path) in metadata.data_files.items():
        style = "new" if name in live else "old"
        (row,) = pq.read_table(next(root.rglob(name)), columns=["id", "amount"], partitioning=None).to_pylist()
        lines = (f"{path}/data-{number}", f"id {row['id']}, amount {row['amount']}")
        drawing.box(640, data_y(number) - 22, 240, 44, style, *lines)
    drawing.line(20, 448, 60, 448, "add")
    drawing.text(68, 452, "the manifest adds the file")
    drawing.line(250, 448, 290, 448, "remove")
    drawing.text(298, 452, "the manifest removes the file")
    drawing.text(500, 452, "solid file: in snapshot 3; dashed file: in an older snapshot only", "soft")
    return drawing.svg()


def draw_manifests(drawing: Drawing, metadata: Metadata) -> None:
    """Draw the snapshots, manifest lists and manifests, with lines to the files that they name."""
    for number, commit_kind in metadata.snapshots.items():
        drawing.box(20, 50 + 140 * (number - 1), 130, 50, "box", f"snapshot-{number}", commit_kind)
    for number, kind, named in metadata.lists:
        y = 50 + 140 * (number - 1) + (0 if kind == "base" else 44)
        drawing.line(150, 75 + 140 * (number - 1), 200, y + 17)
        for name in named:
            drawing.line(330, y + 17, 430, manifest_y(metadata.manifests[name]))
        text = f"{kind}: {len(named)} manifest" + ("s" if len(named) != 1 else "")
        drawing.box(200, y, 130, 34, "box", text)
    for manifest, name, added in metadata.entries:
        style = "add" if added else "remove"
        drawing.line(530, manifest_y(manifest), 640, data_y(metadata.data_files[name][0]), style)
    for number in metadata.manifests.values():
        drawing.box(430, manifest_y(number) - 20, 100, 40, "box", f"manifest-{number}")


def manifest_y(number: int) -> int:
    """Return the middle of a manifest's box."""
    return 111 + 140 * (number - 1)


def data_y(number: int) -> int:
    """Return the middle of a data file's box."""
    return 80 + 95 * (number - 1)


# LSM tree and compaction


def draw_compaction(folder: Path) -> str:
    """Draw the files of one bucket by level and key range, over writes and compactions."""
    table = create_table(folder, "id INT NOT NULL, v INT", {"write-only": "true"}, primary_keys=["id"])
    states: list[tuple[str, list[dict[str, Any]]]] = []

    def _write(first: int, last: int, step: int) -> None:
        table.write({"id": range(first, last + 1, step), "v": [0] * len(range(first, last + 1, step))})

    _write(0, 99, 1)
    states.append(("1. The first write: one run on level 0.", list_files(table)))
    for first, last in ((10, 40), (5, 60), (30, 90), (50, 95)):
        _write(first, last, 5)
    states.append(("2. Four more writes: five runs that overlap.", list_files(table)))
    table.compact()
    states.append(("3. compact(): the runs are merged to one run on the top level.", list_files(table)))
    _write(0, 20, 5)
    _write(70, 99, 5)
    states.append(("4. Two more writes: level 0 grows again.", list_files(table)))
    drawing = Drawing(900, 400, "Files of one bucket by level and key range")
    for place, (text, files) in enumerate(states):
        draw_levels(drawing, 20 + 445 * (place % 2), 20 + 190 * (place // 2), text, files)
    drawing.text(
        20,
        390,
        "A bar is a data file, from its smallest to its largest key. Dashed: level 0, newest file on top.",
        "soft",
    )
    return drawing.svg()


def draw_levels(drawing: Drawing, x: int, y: int, text: str, files: Sequence[Mapping[str, Any]]) -> None:
    """Draw the files of one state, with level 0 on top.

    Parameters
    ----------
    drawing : Drawing
        The picture.
    x, y : int
        Pixels of the top left corner.
    text : str
        Title of the state.
    files : sequence of mapping
        Rows of the system table `files`.
    """
    drawing.text(x, y + 4, text, "title")
    row = y + 18
    for file in files:
        low, high = key_of(file["min_key"]), key_of(file["max_key"])
        style = "old" if file["level"] == 0 else "new"
        drawing.text(x, row + 16, f"level {file['level']}", "soft")
        drawing.box(x + 60 + 3.4 * low, row, 3.4 * (high - low), 22, style, f"{file['record_count']} rows")
        row += 28


# Merge engines

WRITTEN = [
    {"id": 1, "qty": 5, "note": "new"}, {"id": 1, "qty": None, "note": "paid"}, {"id": 1, "qty": 2, "note": None},
]  # fmt: skip
ENGINES = {
    "deduplicate": {},
    "partial-update": {},
    "aggregation": {"fields.qty.aggregate-function": "sum", "fields.note.aggregate-function": "last_non_null_value"},
    "first-row": {},
}


def draw_engines(folder: Path) -> str:
    """Draw three written rows of one key, and what each merge engine returns for them."""
    drawing = Drawing(860, 310, "Three rows of one key, and the result of each merge engine")
    drawing.text(20, 24, "Written, oldest first", "title")
    draw_row(drawing, 20, 36, WRITTEN[0], "title", keys=True)
    for place, row in enumerate(WRITTEN):
        draw_row(drawing, 20, 64 + 34 * place, row, "box")
    drawing.text(340, 24, "Read", "title")
    draw_row(drawing, 480, 36, WRITTEN[0], "title", keys=True)
    for place, (engine, options) in enumerate(ENGINES.items()):
        settings = {"merge-engine": engine, **options}
        table = create_table(folder, "id INT NOT NULL, qty INT, note STRING", settings, primary_keys=["id"])
        for row in WRITTEN:
            table.write([row])
        (result,) = table.scan().to_arrow().to_pylist()
        y = 64 + 58 * place
        drawing.line(270, 64 + 17 + 34, 336, y + 17, "add")
        drawing.text(344, y + 20, engine, "title")
        draw_row(drawing, 480, y, result, "new")
    notes = ("the newest row", "the newest value of each column that is not null",
             "sum of qty, last value of note that is not null", "the oldest row")  # fmt: skip
    for place, note in enumerate(notes):
        drawing.text(480, 64 + 58 * place + 46, note, "soft")
    return drawing.svg()


def draw_row(drawing: Drawing, x: int, y: int, row: Mapping[str, Any], style: str, keys: bool = False) -> None:
    """Draw a row as cells, or the names of its columns.

    Parameters
    ----------
    drawing : Drawing
        The picture.
    x, y : int
        Pixels of the top left corner.
    row : mapping
        Values by column.
    style : str
        Names of CSS classes.
    keys : bool
        Whether the cells show the names of the columns.
    """
    for place, (name, value) in enumerate(row.items()):
        if keys:
            drawing.text(x + 83 * place + 40, y + 20, name, "soft", "middle")
        else:
            drawing.box(x + 83 * place, y, 80, 30, style, "null" if value is None else str(value))


# Commits


def draw_commits(folder: Path) -> str:
    """Draw two writers and two compactors that prepare on the same snapshot, and commit one after the other."""
    table = create_table(folder, "id INT NOT NULL, v INT", {"write-only": "true"}, primary_keys=["id"])
    table.write([{"id": 1, "v": 0}])
    table.write([{"id": 2, "v": 0}])
    table = table.with_options({"write-only": "false"})
    prepared = [(f"writer {name}", *prepare(table, rows)) for name, rows in (("A", [1, 3]), ("B", [2, 4]))]
    prepared += [(f"compactor {name}", *prepare(table, None)) for name in ("C", "D")]
    start = table.snapshot().id
    results = [(name, *publish(table, builder, messages)) for name, builder, messages in prepared]
    drawing = Drawing(900, 330, "Four processes that prepare on one snapshot and commit one after the other")
    closing = "D replaces files that C replaced already: its commit is refused, and abort() deletes its files."
    drawing.text(20, 24, f"Prepare files, all on snapshot {start}", "title")
    drawing.text(360, 24, "Commit, in this order", "title")
    for place, (name, text, published) in enumerate(results):
        y, x = 44 + 52 * place, 360 + 115 * place
        drawing.text(20, y + 22, name)
        drawing.box(120, y, 150, 34, "box", files_text(prepared[place][2]))
        drawing.line(270, y + 17, x, y + 17)
        drawing.box(x, y, 110, 34, "new" if published else "old", text)
        if published:
            drawing.line(x + 55, y + 34, x + 55, 262, "add")
    drawing.text(20, 284, "History", "title")
    drawing.line(120, 280, 870, 280)
    for place, snapshot in enumerate(table.snapshots()[start - 1 :]):
        x = 120 if place == 0 else 360 + 115 * (place - 1)
        drawing.box(x, 262, 110, 36, "box", f"snapshot {snapshot.id}", snapshot.commit_kind.value)
    drawing.text(20, 320, closing, "soft")
    return drawing.svg()


def prepare(table: paimon.Table, ids: Sequence[int] | None) -> tuple[Any, list[Any]]:
    """Write rows with these ids, or compact if there are none, and return the builder and the commit messages."""
    options = {} if ids is None else {"write-only": "true"}
    builder = table.with_options(options).new_batch_write_builder()
    with builder.new_write() as writer:
        if ids is None:
            writer.compact({}, 0, full=True)
        else:
            writer.write_arrow(pa.table({"id": pa.array(ids, pa.int32()), "v": pa.array([9] * len(ids), pa.int32())}))
        return builder, writer.prepare_commit()


def publish(table: paimon.Table, builder: Any, messages: list[Any]) -> tuple[str, bool]:
    """Commit messages that were prepared before.

    Parameters
    ----------
    table : paimon.Table
        The table.
    builder : BatchWriteBuilder
        Makes the commit.
    messages : list of CommitMessage
        The prepared messages.

    Returns
    -------
    outcome : str
        Text for the picture.
    is_published : bool
        Whether there is a new snapshot.
    """
    commit = builder.new_commit()
    try:
        commit.commit(messages)
    except paimon.CommitConflict as error:
        commit.abort(messages)
        return type(error).__name__, False
    return f"snapshot {table.snapshot().id}", True


def files_text(messages: Iterable[Any]) -> str:
    """Return how many files the messages add and remove."""
    added = sum(len(m.data.new_files) + len(m.compact.compact_after) for m in messages)
    removed = sum(len(m.compact.compact_before) for m in messages)
    return f"+{added} file" + (f", -{removed} files" if removed else "")


# Changelogs

CHANGES = (
    [{"op": "+I", "id": 1, "qty": 5}],
    [{"op": "+I", "id": 1, "qty": 2}, {"op": "+I", "id": 2, "qty": 9}],
    [{"op": "-D", "id": 1, "qty": None}],
)
PRODUCERS = ("none", "input", "lookup", "full-compaction")


def draw_changelogs(folder: Path) -> str:
    """Draw what each changelog producer records for the same three writes."""
    drawing = Drawing(900, 290, "Three writes, and the changes that each changelog producer records")
    drawing.text(20, 24, "Written", "title")
    for place, rows in enumerate(CHANGES):
        y = 50 + 74 * place
        drawing.line(20, y - 14, 880, y - 14)
        for line, row in enumerate(rows):
            drawing.text(20, y + 6 + 19 * line, row_text(row["op"], row))
    for column, producer in enumerate(PRODUCERS):
        x = 190 + 175 * column
        drawing.text(x, 24, producer, "title")
        for place, rows in enumerate(read_changes(folder, producer)):
            for line, row in enumerate(rows):
                style = "alert" if row["_row_kind"] in ("-U", "-D") else ""
                drawing.text(x, 56 + 74 * place + 19 * line, row_text(row["_row_kind"], row), style)
            if not rows:
                drawing.text(x, 56 + 74 * place, "(nothing yet)", "soft")
    drawing.text(
        20,
        275,
        "+I insert, -U before an update, +U after it, -D delete. Full compaction runs after the third write.",
        "soft",
    )
    return drawing.svg()


def read_changes(folder: Path, producer: str) -> list[list[dict[str, Any]]]:
    """Write the rows to a table with this producer and return what each write adds to `changes()`."""
    options = {"changelog-producer": producer}
    if producer == "full-compaction":
        options["write-only"] = "true"
    table = create_table(folder, "id INT NOT NULL, qty INT", options, primary_keys=["id"])
    seen, found = 0, []
    for place, rows in enumerate(CHANGES):
        table.write(rows, kind_column="op")
        if producer == "full-compaction" and place == len(CHANGES) - 1:
            table.compact(full=True)
        found.append(table.changes(after=seen).to_arrow().to_pylist())
        seen = table.snapshot().id
    return found


def row_text(kind: str, row: Mapping[str, Any]) -> str:
    """Return a change as text, without the columns that are null."""
    return ", ".join([f"{kind} id {row['id']}", *([f"qty {row['qty']}"] if row["qty"] is not None else [])])


# Memory

BATCH_ROWS = 4


def draw_memory(folder: Path) -> str:
    """Draw the keys of three sorted runs, and the windows in which a merge reads them."""
    table = create_table(folder, "id INT NOT NULL, v INT", {"write-only": "true"}, primary_keys=["id"])
    for ids in (range(0, 60, 3), range(0, 60, 4), [*range(5, 30, 5), *range(40, 60, 2)]):
        table.write(pa.table({"id": pa.array(ids, pa.int32()), "v": pa.array([0] * len(ids), pa.int32())}))
    runs = [pq.read_table(file["file_path"], partitioning=None)["id"].to_pylist() for file in list_files(table)]
    windows = plan_windows(runs)
    most = max(sum(len(part) for part in parts) for _, _, parts in windows)
    total = sum(map(len, runs))
    drawing = Drawing(900, 260, "Three sorted runs, merged in windows of keys")
    drawing.text(20, 24, f"Three sorted runs, merged in windows; a batch holds {BATCH_ROWS} rows", "title")
    for place, (low, high, parts) in enumerate(windows):
        left, width = 80 + 13.4 * (low - 0.5), 13.4 * (high - low + 1)
        if place % 2 == 0:
            drawing.box(left, 40, width, 150, "cut")
        drawing.text(left + width / 2, 184, str(sum(map(len, parts))), "soft", "middle")
    for place, run in enumerate(runs):
        drawing.text(20, 72 + 40 * place, f"run {place + 1}")
        drawing.line(80, 68 + 40 * place, 80 + 13.4 * 59, 68 + 40 * place)
        for key in run:
            drawing.dot(80 + 13.4 * key, 68 + 40 * place)
    drawing.text(20, 184, "rows", "soft")
    lines = (
        "A dot is a row, placed by its key. A window ends at the smallest last key of the batches at hand.",
        f"The largest window has {most} of {total} rows. More rows make more windows, not larger ones.",
    )
    for place, line in enumerate(lines):
        drawing.text(20, 220 + 24 * place, line, "soft")
    return drawing.svg()


def plan_windows(runs: Sequence[Sequence[int]]) -> list[tuple[int, int, list[list[int]]]]:
    """Cut sorted runs into windows of keys, as a merge that reads `BATCH_ROWS` rows of each run at a time."""
    left = [list(run) for run in runs]
    windows, low = [], 0
    while any(left):
        high = min(batch[min(BATCH_ROWS, len(batch)) - 1] for batch in left if batch)
        parts = [[key for key in run if key <= high] for run in left]
        left = [run[len(part) :] for run, part in zip(left, parts, strict=True)]
        windows.append((low, high, parts))
        low = high + 1
    return windows


PICTURES: Mapping[str, Callable[[Path], str]] = {
    "what-is-a-table": draw_table,
    "lsm-and-compaction": draw_compaction,
    "merge-engines": draw_engines,
    "commits-and-safety": draw_commits,
    "changelogs": draw_changelogs,
    "memory": draw_memory,
}


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            (FOLDER / f"{name}.svg").write_text(draw(Path(folder)), "utf8")
        print(f"{name}.svg")


if __name__ == "__main__":
    main()
