"""The documentation site builds without a warning, and lists every page in the order of its sections."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(
    find_spec("mkdocs") is None or find_spec("material") is None,
    reason="mkdocs-material is not installed: install the extra 'docs'",
)


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    surrounding = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=surrounding, capture_output=True, text=True, check=False)


def test_the_site_builds_without_warnings_and_has_every_page(tmp_path: Path) -> None:
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stderr
    home = (tmp_path / "index.html").read_text("utf8")
    for path in DOCS.rglob("*.md"):
        address = path.relative_to(DOCS).with_suffix("").as_posix().removesuffix("index").rstrip("/")
        assert (tmp_path / address / "index.html").exists(), address
        assert not address or f'href="{address}/"' in home, f"{address} is not in the navigation"
    assert home.index('href="reference/options/"') < home.index('href="decisions/arrow-memory/"')
    assert not list(tmp_path.rglob("*.py"))


def build_with_page(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Build a copy of the documents with one more page."""
    shutil.copytree(DOCS, folder / "docs")
    for name in ("mkdocs.yml", "pyproject.toml", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    for name in ("benchmarks", "examples", "paimon/ports"):  # documents link to files in them
        shutil.copytree(ROOT / name, folder / name)
    page = folder / "docs" / "section-of-a-test" / "page.md"
    page.parent.mkdir()
    page.write_text(f"# A page\n\n{text}\n")
    return build(folder, folder / "site")


@pytest.mark.nightly
def test_a_new_page_needs_no_entry(tmp_path: Path) -> None:
    text = "[a file of the repository](../../pyproject.toml) [an option](../reference/options.md#types-of-values)"
    built = build_with_page(tmp_path, text)
    assert built.returncode == 0, built.stderr
    assert re.search(r'href="section-of-a-test/page/"', (tmp_path / "site" / "index.html").read_text("utf8"))


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    targets = ("../reference/missing.md", "../../missing.toml", "../reference/options.md#missing")
    built = build_with_page(tmp_path, " ".join(f"[link]({target})" for target in targets))
    assert built.returncode != 0
    assert [target for target in targets if target not in built.stderr] == []
