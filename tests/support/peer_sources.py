"""Fetch the tests of pypaimon: they are run here, and not copied into this repository.

The distribution of 2.1.0 contains no tests, so a commit of apache/paimon is fetched from GitHub; git checks its
hash. The distribution of 1.4.2 contains its tests, and pip checks its hash. Both are kept in the user's cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "paimon-lake-peer"
REPOSITORY = os.environ.get("PYPAIMON_REPOSITORY", "https://github.com/apache/paimon")
COMMIT = "193723d1961bdb694a025db3c6f5223ec44b3a04"
"""The last change of `paimon-python` before the branch of release 2.1.0."""
TESTS = Path("paimon-python", "pypaimon", "tests")
OLDER = "pypaimon==1.4.2"
OLDER_HASH = "sha256:c21e781a68ca8572f26fc842ff90cccba03e791eebc63daa8b7906a7c8108d25"
_TIMEOUT_SECONDS = 180


class NotFetched(Exception):
    """The tests of a version cannot be had on this machine; the message says why."""


def find_tests(version: str) -> Path:
    """Return the folder with the tests of a version; PYPAIMON_TESTS names one of 2.1.0 that is there already.

    Raises
    ------
    NotFetched
        They are not in the cache, and cannot be fetched.
    """
    given = os.environ.get("PYPAIMON_TESTS")
    if version == "2.1.0":
        return Path(given) if given else _use_cache(COMMIT, _fetch_commit)
    return _use_cache(OLDER, _download_older)


def _use_cache(name: str, fetch: Callable[[Path], None]) -> Path:
    """Return the tests in the cache; a directory appears there when it is complete."""
    place = CACHE / name
    if not place.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as draft:
            fetch(Path(draft))
            with suppress(OSError):  # another run was faster
                Path(draft).rename(place)
    return next(place.glob("**/pypaimon/tests"))


def _fetch_commit(place: Path) -> None:
    settings = {
        "gc.auto": "0",
        "remote.origin.url": REPOSITORY,
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "http.lowSpeedLimit": "1000",
        "http.lowSpeedTime": "20",
    }
    git = ["git", "-C", str(place)]
    _run([*git, "init", "--quiet"])
    for key, value in settings.items():
        _run([*git, "config", key, value])
    _run([*git, "fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", COMMIT])
    _run([*git, "checkout", "--quiet", COMMIT, "--", str(TESTS)])


def _download_older(place: Path) -> None:
    wanted = place / "requirements.txt"
    wanted.write_text(f"{OLDER} --hash={OLDER_HASH}\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet"]
    _run([*pip, "--no-deps", "--no-binary", "pypaimon", "--dest", str(place), "--requirement", str(wanted)])
    with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
        members = [member for member in archive.getmembers() if "/pypaimon/tests/" in member.name]
        archive.extractall(place, members, filter="data")


def _run(command: list[str]) -> None:
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotFetched(str(error)) from error
    if done.returncode != 0:
        raise NotFetched(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else " ".join(command))
