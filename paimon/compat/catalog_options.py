"""Options of pypaimon's catalogs as arguments of `paimon.connect`.

Source: `pypaimon.common.options.config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.compat import settings
from paimon.compat.refused import refuse
from paimon.domain.errors import capitalize, did_you_mean

_METASTORE = "metastore"
_JDBC = ("uri", "catalog-key", "jdbc.user", "jdbc.password", "lock-acquire-timeout", "lock-check-max-sleep")
_OWN = ("memory-budget", "threads", "sync-all-properties")
_PREFIXES = ("fs.s3.", "fs.oss.", "fs.gs.", "fs.azure.", "s3.", "oss.", "gcs.", "gs.", "azure.")
_STORAGE = {
    "accesskeyid": "access_key_id",
    "access-key": "access_key_id",
    "access.key": "access_key_id",
    "accesskeysecret": "secret_access_key",
    "secret-key": "secret_access_key",
    "secret.key": "secret_access_key",
    "securitytoken": "session_token",
    "session-token": "session_token",
    "session.token": "session_token",
    "endpoint": "endpoint",
    "region": "region",
    "path-style-access": "path.style.access",
    "path.style.access": "path.style.access",
}


def to_connect_arguments(options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the warehouse and the named arguments of `paimon.connect`."""
    metastore = options.get(_METASTORE, "filesystem")
    if metastore == "rest":
        refuse("metastore=rest", "open the warehouse with metastore=filesystem or metastore=jdbc")
    if metastore not in ("filesystem", "jdbc"):
        raise ValueError(f"Unknown catalog identifier: {metastore}. Known are filesystem and jdbc.")
    if options.get("warehouse") is None:
        raise ValueError("Paimon 'warehouse' path must be set")
    arguments: dict[str, Any] = {} if metastore == "filesystem" else {_METASTORE: metastore}
    storage: dict[str, Any] = {}
    for key, value in options.items():
        if key in (_METASTORE, "warehouse"):
            continue
        if key.startswith("table-default.") or key in _OWN or (metastore == "jdbc" and key in _JDBC):
            arguments[key] = value
        elif key.startswith(_PREFIXES):
            storage[_to_storage_name(key)] = value
        elif not settings.allows_unknown_options():
            hint = did_you_mean(key, ["warehouse", _METASTORE, *_JDBC, *_OWN, "s3.endpoint", "table-default.X"])
            near = f" {capitalize(hint)}" if hint and hint.startswith("did you mean") else ""
            raise ValueError(f"Catalog option {key!r} is not known.{near} {settings.HOW_TO_ALLOW}.")
    return str(options["warehouse"]), arguments | ({"storage": storage} if storage else {})


def _to_storage_name(key: str) -> str:
    prefix = next(prefix for prefix in _PREFIXES if key.startswith(prefix))
    name = key.removeprefix(prefix)
    return _STORAGE.get(name.lower(), name)
