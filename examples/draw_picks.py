"""Draw the sorted runs that compaction picks, for each line of the table in `docs/compaction.md`.

Each line describes an LSM tree and options. The picker of the library selects the runs; tests compare its choice with
the table and with Java's picker. The script shows how to call the domain without a table:

    python examples/draw_picks.py            # writes docs/compaction.svg
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from math import log2
from pathlib import Path

from attrs import evolve, frozen

from paimon.domain.lsm.compaction.pick import pick
from paimon.domain.lsm.compaction.rules import CompactionRules, OffPeak
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.manifest.entries import DataFileMeta

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "compaction.md"
PICTURE = DOCUMENT.with_suffix(".svg")

NOON = 12
NOW = 1_000_000
"""Time of the compaction in milliseconds, at noon; `made=` in the options is the creation time of all files."""

RULES_BY_WORD = {
    "trigger": "trigger", "levels": "levels", "ratio": "size_ratio", "amplification": "max_amplification_percent",
    "total": "total_size_bytes", "incremental": "incremental_bytes", "interval": "optimization_interval_millis",
}  # fmt: skip


@frozen
class Case:
    """One line of the table.

    Parameters
    ----------
    name : str
        Title of the case.
    runs : tuple of (int, int)
        Level and size in bytes of each sorted run, newest first.
    options : str
        The options as the table has them.
    rules : CompactionRules
        The options in their parsed form.
    made : int
        Creation time of all files in milliseconds.
    taken, level : int
        Number of runs that compaction picks, and the level of its output; 0 and 0 for none.
    """

    name: str
    runs: tuple[tuple[int, int], ...]
    options: str
    rules: CompactionRules
    made: int
    taken: int
    level: int

    @property
    def tree(self) -> MergeTree:
        """The LSM tree of the case."""
        return make_tree(self.runs, self.rules, self.made)

    def pick_runs(self) -> tuple[int, int]:
        """Return the number of runs that the picker selects, and the level of the output."""
        tree = self.tree
        return count_picked_runs(tree, pick(tree, self.rules, NOW, NOON))


def parse_cases(text: str) -> Iterator[Case]:
    """Parse the lines of a table in the form of `docs/compaction.md`."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 5 or cells[0] in ("case", "") or set(cells[0]) <= {"-"}:
            continue
        name, newest, above, options, result = cells
        rules, made = parse_rules(options)
        words = [(0, word) for word in newest.split()] + [(int(n), s) for n, s in re.findall(r"L(\d+) (\d+)", above)]
        runs = tuple((level, int(word.strip("[]"))) for level, word in words)
        marked = sum(len(part.replace("L", " L").split()) for part in re.findall(r"\[([^]]*)]", newest))
        marked += sum(part.count("L") for part in re.findall(r"\[([^]]*)]", above))
        yield Case(name, runs, options, rules, made, marked, int(result.removeprefix("→ L")) if marked else 0)


def make_tree(runs: tuple[tuple[int, int], ...], rules: CompactionRules, made: int = 0) -> MergeTree:
    """Make an LSM tree.

    Parameters
    ----------
    runs : tuple of (int, int)
        Level and size in bytes of each sorted run, newest first.
    rules : CompactionRules
        Rules with the number of levels.
    made : int
        Creation time of all files in milliseconds.

    Returns
    -------
    MergeTree
        One file per run.
    """
    files = [
        DataFileMeta(
            f"f{place}", size, 1, min_sequence_number=-place, max_sequence_number=-place, level=level,
            creation_time_millis=made,
        )
        for place, (level, size) in enumerate(runs)
    ]  # fmt: skip
    return MergeTree.of(reversed(files), rules.levels)


def parse_rules(text: str) -> tuple[CompactionRules, int]:
    """Parse the options of a line to rules and the creation time of the files."""
    rules, made = CompactionRules(), 0
    for word in text.split():
        name, _, value = word.partition("=")
        if name == "force":
            rules = evolve(rules, force_level_0=True)
        elif name == "offpeak":
            hours, ratio = value.split(",")
            start, end = hours.split("-", 1)
            rules = evolve(rules, off_peak=OffPeak(int(start), int(end), int(ratio)))
        elif name == "made":
            made = int(value)
        else:
            rules = evolve(rules, **{RULES_BY_WORD[name]: int(value)})
    return rules, made


def count_picked_runs(tree: MergeTree, unit: CompactUnit | None) -> tuple[int, int]:
    """Return the number of newest runs in a compaction unit, and its output level; 0 and 0 for None."""
    if unit is None:
        return 0, 0
    names = {f.file_name for f in unit.files}
    taken = [run for run in tree.runs if {f.file_name for f in run.files} <= names]
    assert tuple(taken) == tree.runs[: len(taken)], "a unit contains the newest runs without a gap"
    return len(taken), unit.output_level


WIDE, HIGH, ROW, COLUMNS = 250, 130, 13, 4
STYLE = (
    "text{font:10px sans-serif;fill:#333}.n{font-weight:bold}.o{fill:#777}.t{fill:#d95f02}.k{fill:#8da0cb}"
    ".f{fill:#fff7ef;stroke:#d95f02}"
)


def draw_cases(table: list[Case]) -> str:
    """Draw all cases: levels from top to bottom, runs as bars of logarithmic width, and picked runs in orange."""
    rows = -(-len(table) // COLUMNS)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE * COLUMNS}" height="{HIGH * rows}">']
    parts.append(f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>')
    for place, case in enumerate(table):
        x, y = WIDE * (place % COLUMNS) + 8, HIGH * (place // COLUMNS) + 14
        parts += [f'<g transform="translate({x},{y})">', *_draw_case(case), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _draw_case(case: Case) -> Iterator[str]:
    taken, output = case.pick_runs()
    yield f'<text class="n">{escape(case.name)}</text><text class="o" y="12">{escape(case.options)}</text>'
    levels = sorted({level for level, _ in case.runs} | ({output} if taken else set()))
    for row, level in enumerate(levels):
        y, x = 18 + ROW * row, 22
        if taken and level == output:
            yield f'<rect class="f" x="20" y="{y - 1}" width="{WIDE - 40}" height="{ROW - 1}"/>'
        yield f'<text y="{y + 9}">L{level}</text>'
        for place, (at, size) in enumerate(case.runs):
            if at == level:
                width = 8 + round(7 * log2(size))
                style = "t" if place < taken else "k"
                yield f'<rect class="{style}" x="{x}" y="{y + 1}" width="{width}" height="{ROW - 5}"/>'
                x += width + 3
    summary = f"{taken} of {len(case.runs)} runs → L{output}" if taken else "nothing is picked"
    yield f'<text y="{30 + ROW * len(levels)}">{summary}</text>'


def main() -> None:
    """Draw the table of the document and write the picture."""
    table = list(parse_cases(DOCUMENT.read_text("utf8")))
    PICTURE.write_text(draw_cases(table), "utf8")
    print(f"{PICTURE.name}: {len(table)} trees")


if __name__ == "__main__":
    main()
