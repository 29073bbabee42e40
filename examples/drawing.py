"""A small SVG drawing: boxes, lines, dots and texts in the colors of light and dark pages."""

from __future__ import annotations

from html import escape

STYLE = (
    "svg{--back:#fff;--ink:#1f2328;--soft:#59636e;--line:#8c959f;--box:#f3f5f7;--blue:#0072b2;--orange:#c75000;"
    "--pale:#cfe6f5;--warm:#fde3cf}"
    "@media(prefers-color-scheme:dark){svg{--back:#14181d;--ink:#e6edf3;--soft:#a3adb8;--line:#768390;--box:#232a32;"
    "--blue:#56b4e9;--orange:#f0a04b;--pale:#173d57;--warm:#573312}}"
    ".back{fill:var(--back)}text{font:12px sans-serif;fill:var(--ink)}.title{font-weight:bold}.soft{fill:var(--soft)}"
    ".box{fill:var(--box);stroke:var(--line)}.new{fill:var(--pale);stroke:var(--blue);stroke-width:1.5}"
    ".old{fill:var(--warm);stroke:var(--orange);stroke-width:1.5;stroke-dasharray:5 3}"
    ".line{stroke:var(--line);fill:none}.add{stroke:var(--blue);stroke-width:2;fill:none}"
    ".remove{stroke:var(--orange);stroke-width:2;stroke-dasharray:5 3;fill:none}"
    ".dot{fill:var(--blue)}.cut{fill:var(--box);stroke:none}.alert{fill:var(--orange);font-weight:bold}"
)


class Drawing:
    """The parts of one SVG picture, in the order in which they are painted."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
            '<rect class="back" width="100%" height="100%"/>',
        ]

    def text(self, x: float, y: float, text: str, style: str = "", anchor: str = "start") -> None:
        """Write one line of text.

        Parameters
        ----------
        x, y : float
            Pixels; `y` is the base line.
        text : str
            The text, without markup.
        style : str
            Names of CSS classes.
        anchor : str
            ``start``, ``middle`` or ``end``: the part of the text at `x`.
        """
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, x: float, y: float, width: float, height: float, style: str, *lines: str) -> None:
        """Draw a rectangle with centred lines of text.

        Parameters
        ----------
        x, y, width, height : float
            Pixels, from the top left corner.
        style : str
            Names of CSS classes.
        *lines : str
            The lines.
        """
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" class="{style}"/>')
        top = y + height / 2 + 4 - 7.5 * (len(lines) - 1)
        for place, line in enumerate(lines):
            self.text(x + width / 2, top + 15 * place, line, "", "middle")

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str = "line") -> None:
        """Draw a straight line.

        Parameters
        ----------
        x1, y1, x2, y2 : float
            Pixels of both ends.
        style : str
            Names of CSS classes.
        """
        self._parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{style}"/>')

    def dot(self, x: float, y: float) -> None:
        """Draw a small disc."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="4" class="dot"/>')

    def svg(self) -> str:
        """Return the picture as text."""
        return "\n".join([*self._parts, "</svg>", ""])
