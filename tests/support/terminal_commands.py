"""Run commands on a pseudo-terminal, or with packages missing; each in its own process."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select

import paimon
from support.warm_processes import run_code, start_code

HOME = str(Path(paimon.__file__).parents[1])
COMMAND = (sys.executable, "-m", "paimon")
RUN = "import sys; from paimon.cli.main import main; sys.exit(main())"
"""What `COMMAND` runs."""
_STYLES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_BLOCKER = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {blocked!r} else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = map(Without, sys.meta_path)
"""


def block_packages(*packages: str) -> str:
    """Python code that hides these packages, as if they were not installed."""
    return _BLOCKER.format(blocked=set(packages))


def on_terminal(words: Sequence[str], columns: int = 80, code: str = RUN, typed: str = "") -> list[str]:
    """Return the lines of a successful command on a terminal of this width; the user types `typed`."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    surrounding = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"PYTHONPATH": HOME}
    surrounding["PROMPT_TOOLKIT_NO_CPR"] = "1"  # this terminal does not answer where its cursor is
    os.write(master, typed.encode())
    process = start_code(code, words, [os.ttyname(slave)] * 3, surrounding)
    os.set_blocking(master, False)
    chunks = list[bytes]()
    while process.is_alive() or not chunks:
        select([master], [], [], 0.05)
        chunks.append(_read(master))
    chunks += iter(lambda: _read(master), b"")
    os.close(slave)
    os.close(master)
    text = _STYLES.sub("", b"".join(chunks).decode())
    assert process.exitcode == 0, text
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")  # splitlines would also split at other characters


_END = "\x1d"
_RUN_ALL = f"""
import json, sys
from paimon.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    if code:
        sys.exit(code)
    print({_END!r}, flush=True)
"""


def all_on_terminal(commands: Mapping[str, Sequence[str]], columns: int) -> dict[str, list[str]]:
    """The lines that each command prints on a terminal of this width; one process runs them all."""
    text = "\n".join(on_terminal([json.dumps(list(commands.values()))], columns, _RUN_ALL))
    return {name: part.strip("\n").split("\n") for name, part in zip(commands, text.split(_END), strict=False)}


def into_file(words: Sequence[str]) -> str:
    """The output of a command where no terminal is. The command must succeed."""
    done = run_code(RUN, *words)
    assert done.code == 0, done.errors
    return done.output.decode()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end is closed
        return b""
