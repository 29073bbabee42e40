"""Java's white space, so that this library and Java put a blank partition value into the same directory.

Invariant: `JAVA_WHITESPACE` holds exactly the code points of `Character.isWhitespace`. Python's `str.isspace` and
Arrow's `utf8_trim_whitespace` use other ones (U+0085 and U+00A0, for example).
Source: `StringUtils.isNullOrWhitespaceOnly`, `Character.isWhitespace`, `String.trim`.
"""

from __future__ import annotations

JAVA_WHITESPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
"""The code points of `Character.isWhitespace`; the no-break spaces U+00A0, U+2007 and U+202F are not among them."""

JAVA_TRIMMED = "".join(map(chr, range(0x21)))
"""The code points that `String.trim` removes at both ends: all up to the space."""


def is_blank(text: str) -> bool:
    r"""Return whether Java's `StringUtils.isNullOrWhitespaceOnly` holds for a text.

    >>> is_blank("\u3000"), is_blank("\x01"), is_blank("\xa0")
    (True, False, False)
    """
    return not text.strip(JAVA_WHITESPACE)
