"""AllowedRoots: the directories that local paths may not leave through symbolic links.

Invariant: a path below a root is used only if, with all links followed, it lies below one of the roots (links followed
too). Links within the roots, and a root that is a link itself, are allowed. Source: our own rule.
"""

from __future__ import annotations

import os

from attrs import frozen

from paimon.domain.errors import CorruptTable

_HINT = "open the table by its real path, or pass allowed_roots=[…] if you trust the target"


@frozen
class AllowedRoots:
    """Absolute local directories. Without any, every path is allowed.

    A path that lies below no root by its name is allowed here: the reader of the name has checked it.
    """

    roots: tuple[str, ...] = ()

    def check_target(self, name: str, path: str) -> str:
        """Return `name`, a local file to read; CorruptTable for `path` if links lead out of the roots."""
        if self.is_outside(name):
            raise CorruptTable(
                path, f"a symbolic link leads to {os.path.realpath(name)!r}, outside the allowed roots", hint=_HINT
            )
        return name

    def check_parent(self, name: str, path: str) -> str:
        """Return `name`, a file to write or delete, if its directory is inside the roots; else CorruptTable."""
        self.check_target(os.path.dirname(name), path)
        return name

    def is_outside(self, name: str) -> bool:
        """Return whether symbolic links lead a path out of the roots."""
        root = next((root for root in self.roots if _is_below(name, root)), None)
        if root is None or not _has_link_below(root, name):
            return False
        real = os.path.realpath(name)
        return not any(_is_below(real, os.path.realpath(root)) for root in self.roots)


def _has_link_below(root: str, name: str) -> bool:
    """Return whether a symbolic link lies between a root and a path; runs for each open, so checks little."""
    if "/../" in f"{name}/" or "/./" in name:
        return True  # only the system can resolve these parts if there are links
    prefix = root.rstrip("/")
    for part in name[len(prefix) :].split("/"):
        if part:
            prefix = f"{prefix}/{part}"
            if os.path.islink(prefix):
                return True
    return False


def _is_below(name: str, root: str) -> bool:
    return name == root or name.startswith(root.rstrip("/") + "/")
