"""Hooks of the site's build: the navigation, and links to files of the repository outside `docs`.

A new page needs no entry anywhere. Within a folder, pages are in alphabetical order of their file names, `index.md`
first.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import nest_paths

ORDER = ("index.md", "tutorial", "how-to", "explanation", "reference", "specification", "decisions", "promises.md",
         "glossary.md")  # fmt: skip
"""The order of the sections; others follow in alphabetical order."""

_LINK = re.compile(r"\[([^\]\n]*)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)\s]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Make the navigation from the folders."""
    pages = [file for file in files.documentation_pages() if file.inclusion.is_in_nav()]
    config["nav"] = nest_paths(file.src_uri for file in sorted(pages, key=_position))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Replace links to files outside `docs` by their text: the site does not contain these files.

    A link to a file that does not exist stays, so that a strict build fails.
    """
    folder = Path(page.file.abs_src_path or "").parent
    root = Path(config.docs_dir).resolve()

    def replace(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        is_outside = target.exists() and not target.is_relative_to(root) and target.is_relative_to(root.parent)
        return link[1] if is_outside else link[0]

    return _LINK.sub(replace, markdown)


def _position(file: File) -> tuple[int, str, bool, str]:
    path = PurePosixPath(file.src_uri)
    section = path.parts[0]
    rank = ORDER.index(section) if section in ORDER else len(ORDER)
    return rank, section, path.name != "index.md", file.src_uri
