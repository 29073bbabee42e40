"""The warehouse and the catalog options of a command: of its arguments, of the file of `--config`, of the environment.

Invariant: arguments have priority over the file, and the file over PAIMON_WAREHOUSE and PAIMON_CATALOG. No file is read
unless `--config` names it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.extras import missing_extra

_WAREHOUSE = "warehouse"


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add `--config`, which stands before the command."""
    parser.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="YAML file with the warehouse and the options of the catalog, such as pypaimon's paimon.yaml",
    )


def complete_arguments(arguments: argparse.Namespace) -> None:
    """Set the warehouse and the catalog options of a parsed command from its configuration file or the environment.

    Arguments that the command does not have are left out. Options of the command line have precedence.
    """
    config = None if arguments.config is None else read_config(arguments.config)
    if hasattr(arguments, "warehouse") and arguments.warehouse is None:
        environment = os.environ.get("PAIMON_WAREHOUSE")
        arguments.warehouse = environment if config is None else config.get(_WAREHOUSE, environment)
    if hasattr(arguments, "catalog"):
        inherited = os.environ.get("PAIMON_CATALOG", "").split()
        if config is not None:
            inherited = [f"{key}={value}" for key, value in config.items() if key != _WAREHOUSE]
        arguments.catalog = inherited + arguments.catalog


def read_config(path: str) -> Mapping[str, str]:
    """Read a YAML file of catalog options, with the values as options have them: ``true`` and not ``True``."""
    try:
        import yaml
    except ModuleNotFoundError as missing:
        raise missing_extra("The argument --config", "pyyaml") from missing
    try:
        found = yaml.safe_load(Path(path).read_text("utf8"))
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(path, str(error), hint="check the path, and that the file is UTF-8") from error
    except yaml.YAMLError as error:
        raise _not_a_config(path) from error
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise _not_a_config(path)
    return {str(key): _to_text(value) for key, value in found.items() if value is not None}


def _to_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _not_a_config(path: str) -> InvalidRequest:
    return InvalidRequest(
        f"File {path!r} is not a YAML mapping of catalog options.",
        subject=path,
        hint="write lines such as 'warehouse: /path/to/lake' and 'metastore: filesystem'",
    )
