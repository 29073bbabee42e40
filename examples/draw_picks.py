"""What compaction picks, as a picture: the table of `docs/compaction.md`, drawn.

Each line of the table is a merge tree and some options; the unit is what the library's own picker takes of it, which
our tests hold equal to the table, and to Java's picker. Calling the domain alone, it shows what can be done without a
table:

    python examples/draw_picks.py            # writes docs/compaction.svg anew
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
"""`made=` in the options is the creation time of all files; they are looked at at this time, at noon."""

WORDS = {
    "trigger": "trigger", "levels": "levels", "ratio": "size_ratio", "amplification": "max_amplification_percent",
    "total": "total_size_bytes", "incremental": "incremental_bytes", "interval": "optimization_interval_millis",
}  # fmt: skip


@frozen
class Case:
    """One line of the table.

    Parameters
    ----------
    name : str
        What it shows.
    runs : tuple of (int, int)
        Level and size of each sorted run, newest first.
    rules : CompactionRules
        What the options say.
    made : int
        Creation time of all files.
    taken, level : int
        How many runs are taken, and the level they go to; 0, 0 for none.
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
        """The merge tree."""
        return tree_of(self.runs, self.rules, self.made)

    def picked(self) -> tuple[int, int]:
        """How many runs the picker takes, and the level they go to."""
        tree = self.tree
        return taken_of(tree, pick(tree, self.rules, NOW, NOON))


def cases(text: str) -> Iterator[Case]:
    """The lines of a table as `docs/compaction.md` has it."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 5 or cells[0] in ("case", "") or set(cells[0]) <= {"-"}:
            continue
        name, newest, above, options, result = cells
        rules, made = rules_of(options)
        words = [(0, word) for word in newest.split()] + [(int(n), s) for n, s in re.findall(r"L(\d+) (\d+)", above)]
        runs = tuple((level, int(word.strip("[]"))) for level, word in words)
        marked = sum(len(part.replace("L", " L").split()) for part in re.findall(r"\[([^]]*)]", newest))
        marked += sum(part.count("L") for part in re.findall(r"\[([^]]*)]", above))
        yield Case(name, runs, options, rules, made, marked, int(result.removeprefix("→ L")) if marked else 0)


def tree_of(runs: tuple[tuple[int, int], ...], rules: CompactionRules, made: int = 0) -> MergeTree:
    """A tree of runs given newest first."""
    files = [
        DataFileMeta(
            f"f{place}", size, 1, min_sequence_number=-place, max_sequence_number=-place, level=level,
            creation_time_millis=made,
        )
        for place, (level, size) in enumerate(runs)
    ]  # fmt: skip
    return MergeTree.of(reversed(files), rules.levels)


def rules_of(text: str) -> tuple[CompactionRules, int]:
    """The rules that the words of a line say, and the creation time of the files."""
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
            rules = evolve(rules, **{WORDS[name]: int(value)})
    return rules, made


def taken_of(tree: MergeTree, unit: CompactUnit | None) -> tuple[int, int]:
    """A unit as the number of runs that it takes, newest first, and its level."""
    if unit is None:
        return 0, 0
    names = {f.file_name for f in unit.files}
    taken = [run for run in tree.runs if {f.file_name for f in run.files} <= names]
    assert tuple(taken) == tree.runs[: len(taken)], "the newest runs, without a gap"
    return len(taken), unit.output_level


WIDE, HIGH, ROW, COLUMNS = 250, 130, 13, 4
STYLE = (
    "text{font:10px sans-serif;fill:#333}.n{font-weight:bold}.o{fill:#777}.t{fill:#d95f02}.k{fill:#8da0cb}"
    ".f{fill:#fff7ef;stroke:#d95f02}"
)


def drawn(table: list[Case]) -> str:
    """The picture: levels from top to bottom, runs as bars as wide as their size (logarithmic), those taken orange."""
    rows = -(-len(table) // COLUMNS)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE * COLUMNS}" height="{HIGH * rows}">']
    parts.append(f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>')
    for place, case in enumerate(table):
        x, y = WIDE * (place % COLUMNS) + 8, HIGH * (place // COLUMNS) + 14
        parts += [f'<g transform="translate({x},{y})">', *_panel(case), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(case: Case) -> Iterator[str]:
    taken, output = case.picked()
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
    said = f"{taken} of {len(case.runs)} runs → L{output}" if taken else "nothing is picked"
    yield f'<text y="{30 + ROW * len(levels)}">{said}</text>'


def main() -> None:
    """Draw the table of the document."""
    table = list(cases(DOCUMENT.read_text("utf8")))
    PICTURE.write_text(drawn(table), "utf8")
    print(f"{PICTURE.name}: {len(table)} trees")


if __name__ == "__main__":
    main()
