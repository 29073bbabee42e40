"""Build the files of a release, check them, and sign them; nothing is published.

1. Set the version in `pyproject.toml` and `paimon/__init__.py`, and move the changes of `CHANGELOG.md` to its section.
2. Run ``python3 dev.py tests``, and ``python3 dev.py tests --nightly``, which also tries the lowest versions of all
   packages, and each installed Python of the classifiers.
3. Run ``python3 dev.py release``. It writes the source archive and the wheel to ``dist/``, and checks metadata and
   content. A new environment gets the wheel alone, writes a table and reads it. If PAIMON_SIGNING_KEY names a key of
   gpg, each file gets a detached signature.
4. Tag the commit, and upload the files yourself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
KINDS = (".py", ".java", ".typed")
QUICKSTART = """
import sys, paimon
catalog = paimon.connect(sys.argv[1])
catalog.create_database("shop")
orders = catalog.create_table("shop.orders", "id BIGINT NOT NULL, amount DECIMAL(10, 2)", primary_keys=["id"],
                              options={"bucket": 4})
orders.write([{"id": 1, "amount": "9.99"}, {"id": 2, "amount": "1.00"}])
orders.write([{"id": 2, "amount": "7.00"}])
assert orders.scan(where="amount > 5").count() == 2
assert paimon.__version__ == sys.argv[2], paimon.__version__
assert paimon.__file__.startswith(sys.prefix), paimon.__file__
"""


def main() -> int:
    """Build, check and sign; return the exit code."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]["version"]
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    built = sorted(DIST.iterdir())
    _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built))
    for path in built:
        _check_content(path)
    with tempfile.TemporaryDirectory() as home:
        _try_wheel(next(path for path in built if path.suffix == ".whl"), Path(home), version)
    _sign(built)
    if not re.search(rf"^## \[{re.escape(version)}\]", (ROOT / "CHANGELOG.md").read_text("utf8"), re.MULTILINE):
        print(f"Before you publish: CHANGELOG.md has no section [{version}].")
    print("\n".join(["Nothing is published. The files:", *(f"  dist/{path.name}" for path in sorted(DIST.iterdir()))]))
    return 0


def _check_content(archive: Path) -> None:
    """Check that an archive has all files of the package, and its licence."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = wheel.namelist()
    else:
        with tarfile.open(archive) as source:
            names = [name.partition("/")[2] for name in source.getnames()]
    needed = {str(path.relative_to(ROOT)) for path in (ROOT / "paimon").rglob("*") if path.suffix in KINDS}
    if missing := sorted(needed - set(names)):
        sys.exit(f"{archive.name} lacks {', '.join(missing)}")
    if not any(name.endswith("LICENSE") for name in names):
        sys.exit(f"{archive.name} lacks the licence")


def _try_wheel(wheel: Path, home: Path, version: str) -> None:
    """Install the wheel into a new environment, and run a short program outside the repository."""
    venv.create(home / "environment", with_pip=True)
    python = str(home / "environment" / "bin" / "python")
    _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel))
    _run(python, "-c", QUICKSTART, str(home / "lake"), version)
    _run(str(home / "environment" / "bin" / "paimon"), "ls", str(home / "lake"))


def _sign(files: list[Path]) -> None:
    key = os.environ.get("PAIMON_SIGNING_KEY")
    if not key:
        print("Not signed: PAIMON_SIGNING_KEY names no key of gpg.")
        return
    for path in files:
        _run("gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign", str(path))
        _run("gpg", "--batch", "--verify", f"{path}.asc", str(path))


def _run(*command: str) -> None:
    """Run a command outside the repository; exit with its code if it fails."""
    print("+", " ".join(command[:6]).strip().splitlines()[0][:100], flush=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, check=False, cwd=tempfile.gettempdir(), env=environment)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    sys.exit(main())
