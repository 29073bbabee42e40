#!/usr/bin/env python3
"""Set-up and commands of this repository, with nothing but Python 3.11 or newer.

    python3 dev.py flights [OPTIONS]     run the flights pipeline on local Spark (see --help)
    python3 dev.py tests [PYTEST ARGS]   run all tests and fences

Each makes its own virtual environment in `.venv` (another place: PAIMON_VENV), installs what it needs by pip with
pip's own settings, and installs again only when pyproject.toml has changed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
HOME = Path(os.environ.get("PAIMON_VENV", ROOT / ".venv"))
EXTRAS = {"flights": "demo", "tests": "test"}


def main(arguments: list[str]) -> int:
    """Run the command; its exit code is answered."""
    if sys.version_info < (3, 11):  # noqa: UP036  (this file is what an older Python runs first)
        print(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}", file=sys.stderr)
        return 2
    if not arguments or arguments[0] not in EXTRAS:
        print(__doc__.strip())
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    command, rest = arguments[0], arguments[1:]
    python = environment(EXTRAS[command])
    if command == "flights":
        return subprocess.call([python, "-m", "paimon", "demo", "flights", *rest], cwd=ROOT)
    return subprocess.call([python, "-m", "pytest", *(rest or default_test_arguments())], cwd=ROOT)


def default_test_arguments() -> list[str]:
    """In parallel on all cores; tests of one file stay together, as they share a Spark or a Java process."""
    return ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "-q"]


def environment(extra: str) -> str:
    """The python of the environment, made and filled where that has not been done for this pyproject.toml."""
    python = HOME / "bin" / "python"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    stamp = HOME / f"installed-{extra}"
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    if not python.exists():
        print(f"making a virtual environment in {HOME} …", flush=True)
        venv.create(HOME, with_pip=True)
    print(f"installing paimon-lake[{extra}] (the first time takes a few minutes) …", flush=True)
    subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[{extra}]"])
    stamp.write_text(wanted)
    return str(python)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
