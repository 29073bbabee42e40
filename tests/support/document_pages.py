"""Run the code blocks of a Markdown page in order, and compare what they print with the page.

A page's `python` blocks share one namespace. The lines of its `sh` blocks are `paimon` commands, run in this process. A
`text` block is the output of the block before it; `...` in it matches any text. The line `<!-- not run: NAME -->`
before a block skips it; each test lists the names that it allows, with the reason.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from attrs import frozen

from paimon.cli.main import main

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<marker>[^\n]+?) -->\n+)?```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.S | re.M
)
_LINK = re.compile(r"!?\[[^]]*]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.M)


@frozen
class Block:
    """One fenced block.

    Parameters
    ----------
    language : str
        The word after the opening fence; empty where there is none.
    code : str
        The lines between the fences.
    marker : str, optional
        The name in the page's marker that the block does not run.
    line : int
        How many lines of the page come before the code, for tracebacks.
    """

    language: str
    code: str
    marker: str | None = None
    line: int = 0


def read_blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf8")
    found = [
        Block(m["language"], m["code"], m["marker"], text.count("\n", 0, m.start("code")))
        for m in _FENCE.finditer(text)
    ]
    assert len(found) * 2 == len(re.findall(r"^ *```", text, re.M)), f"{page}: a fence is not closed, or indented"
    assert len([b for b in found if b.marker]) == text.count("<!-- not run"), f"{page}: a marker without a block"
    return found


def run_page(page: Path, names: dict[str, object]) -> None:
    """Run the blocks of a page in the current folder, with these names. Raise AssertionError if the output differs."""
    printed: str | None = None
    for block in read_blocks(page):
        if block.marker is not None:
            printed = None
        elif block.language == "python":
            printed = run_python(block, page, names)
        elif block.language == "sh":
            printed = "".join(run_command(line, page) for line in block.code.splitlines())
        elif block.language == "text":
            assert printed is not None, f"{page}: output without a block that was run\n{block.code}"
            same = doctest.OutputChecker().check_output(block.code, printed, doctest.ELLIPSIS)
            assert same, f"{page} shows\n{block.code}\nbut this was printed\n{printed}"
            printed = None
        else:
            raise AssertionError(f"{page}: blocks of {block.language!r} are not run")


def run_python(block: Block, page: Path, names: dict[str, object]) -> str:
    """The output of a block."""
    with _capture_output() as output:
        exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
    return output.getvalue().decode()


def run_command(line: str, page: Path) -> str:
    """The output of one `paimon` command, which must succeed."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    assert words[0] == "paimon", f"{page}: {line!r} is not a paimon command; mark its block as not run"
    with _capture_output() as output:
        code = main(words[1:])
    assert code == 0, f"{page}: {line!r} ended with {code}\n{output.getvalue().decode()}"
    return output.getvalue().decode()


@contextmanager
def _capture_output() -> Iterator[io.BytesIO]:
    """The bytes of standard output; commands write to its buffer too."""
    output = io.BytesIO()
    stream = io.TextIOWrapper(output, "utf8", write_through=True)
    with redirect_stdout(stream):
        yield output
    stream.detach()


def broken_links(page: Path) -> Iterator[str]:
    """Relative links of a page that lead to no file, or to no heading of a Markdown file."""
    text = _FENCE.sub("", page.read_text("utf8"))
    for match in _LINK.finditer(text):
        target, _, heading = match["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (heading and heading not in _heading_names(file)):
            yield match["target"]


def _heading_names(page: Path) -> set[str]:
    titles = [m["title"] for m in _HEADING.finditer(_FENCE.sub("", page.read_text("utf8")))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
