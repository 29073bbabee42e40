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


def build_small_site(root: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Build a site of three pages with the settings and hooks of the documents; one page has the text."""
    pages = {
        "index.md": "# Home",
        "reference/options.md": "# Options",
        "section-of-a-test/page.md": f"# A page\n\n{text}",
    }
    for name, content in pages.items():
        page = root / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"{content}\n")
    for name in ("mkdocs.yml", "pyproject.toml", "docs/site_hooks.py"):
        shutil.copy(ROOT / name, root / name)
    return build(root, root / "site")


@pytest.mark.nightly
def test_a_new_page_needs_no_entry(tmp_path: Path) -> None:
    text = "[a file of the repository](../../pyproject.toml) [an option](../reference/options.md#options)"
    built = build_small_site(tmp_path, text)
    assert built.returncode == 0, built.stderr
    assert re.search(r'href="section-of-a-test/page/"', (tmp_path / "site" / "index.html").read_text("utf8"))


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    targets = ("../reference/missing.md", "../../missing.toml", "../reference/options.md#missing")
    built = build_small_site(tmp_path, " ".join(f"[link]({target})" for target in targets))
    assert built.returncode != 0
    assert [target for target in targets if target not in built.stderr] == []
