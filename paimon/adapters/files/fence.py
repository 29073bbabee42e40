"""Where local paths really lead: symbolic links do not lead out of the roots that a table may use.

Law: a path below a root is used only if, with all links followed, it lies below one of the roots (links followed too).
Links within the roots, and a root that is a link itself, are as good as directories. Source: our own rule.
"""

from __future__ import annotations

import os

from attrs import frozen

from paimon.domain.errors import CorruptTable

_HINT = "open the table by its real path, or pass allowed_roots=[…] if that place is to be trusted"


@frozen
class Fence:
    """Absolute local directories; without any, every path is let through.

    Paths that lie below no root even by name were judged by whoever took the name.
    """

    roots: tuple[str, ...] = ()

    def inside(self, name: str, path: str) -> str:
        """The name of a local file itself; CorruptTable for `path` where links lead it out of the roots."""
        if self.leaves(name):
            raise CorruptTable(path, f"leads to {os.path.realpath(name)!r} by a symbolic link", hint=_HINT)
        return name

    def place(self, name: str, path: str) -> str:
        """Like `inside` for what is made, replaced or removed: a link that has the name is not followed."""
        self.inside(os.path.dirname(name), path)
        return name

    def leaves(self, name: str) -> bool:
        """Whether links lead a path out of the roots."""
        if not any(_is_below(name, root) for root in self.roots):
            return False
        real = os.path.realpath(name)
        return real != name and not any(_is_below(real, os.path.realpath(root)) for root in self.roots)


def _is_below(name: str, root: str) -> bool:
    return name == root or name.startswith(root.rstrip("/") + "/")
