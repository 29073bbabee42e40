"""Jars that Maven resolves for a pom, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "paimon-lake-interop"


def find_home(*sources: Path) -> Path:
    """Return the directory of what is made from these files; it changes with their content."""
    home = CACHE / hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    home.mkdir(parents=True, exist_ok=True)
    return home


def resolve_jars(pom: Path, home: Path) -> list[str]:
    """Return the paths of the jars of a pom.

    Raises
    ------
    subprocess.CalledProcessError, FileNotFoundError
        Maven cannot resolve them, or is not installed.
    """
    jars = home / "classpath"
    if not jars.exists():
        found = home / f"classpath.{os.getpid()}"
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={found}"]
        subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal], check=True, capture_output=True)
        found.rename(jars)
    return jars.read_text().strip().split(os.pathsep)
