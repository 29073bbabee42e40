"""The warehouse with which a session is registered: its tables are found by name, with its storage and its catalog.

Invariant: the session and the data source keep no secret. Options of a call take precedence over those of the session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from attrs import frozen
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon import engines
from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.setting import option_text
from paimon.domain.secrets import remove_secrets
from paimon.domain.text_checks import check_mapping
from paimon.engines import catalog_for, open_table
from paimon.spark.options import CATALOG, STORAGE, TABLE_OPTIONS, WAREHOUSE, format_option, parse_source_options
from paimon.system_table import SystemTable
from paimon.table import Table

WAREHOUSE_SETTING = "spark.paimon.warehouse"
"""The setting of a session that contains its warehouse; without a value the session has none."""
TIME_ZONE = "spark.sql.session.timeZone"
_REFUSED_IN_PIPELINES = "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE"


@frozen
class Warehouse:
    """A warehouse as options of the data source: `storage` and `catalog`, without secrets."""

    options: Mapping[str, str]

    @classmethod
    def of(cls, catalog: Catalog) -> Warehouse:
        """Return the warehouse of a catalog, without secrets.

        Raises `Unsupported` if the catalog was not opened by `paimon.connect`.
        """
        if catalog.recipe is None or catalog.recipe[0] is not catalog_for:
            hint = "open the catalog with paimon.connect"
            raise Unsupported("a Spark session with a catalog of your own", hint=hint)
        location, storage, options = catalog.recipe[1]
        given = {STORAGE: dict(storage), CATALOG: {WAREHOUSE: location, **options}}
        return cls({name: format_option(name, value) for name, value in given.items() if value})


def open_warehouse(given: object, storage: Mapping[str, object] | None, options: Mapping[str, object]) -> Warehouse:
    """Check the arguments of `register`, and return the warehouse; refuse options that are secrets."""
    if isinstance(given, Catalog):
        if options or storage:
            raise InvalidRequest("A catalog takes no options here.", subject="options", hint="give them to its connect")
        return Warehouse.of(given)
    catalog = engines.open_warehouse(given, {"storage": storage, **options})  # type: ignore[arg-type]
    for name, values in (("storage", storage or {}), ("register", options)):
        secret = sorted(key for key, value in values.items() if remove_secrets({key: value}) != {key: value})
        if secret:
            raise InvalidRequest(
                f"Option {secret[0]!r} of {name} is a secret, and Spark sends the options to other processes.",
                subject=secret[0],
                hint="set credentials in the environment of the processes, or name a function in the option login",
            )
    if "://" not in catalog.warehouse:
        catalog.databases()  # refuses a directory that does not exist
    return Warehouse.of(catalog)


_PIPELINE_WAREHOUSES: WeakKeyDictionary[SparkSession, Warehouse] = WeakKeyDictionary()
"""The warehouses of sessions that load the definitions of a pipeline, and refuse to change their settings."""


def get_warehouse(spark: SparkSession) -> Warehouse | None:
    """Return the warehouse of a session; None if it has none."""
    if spark in _PIPELINE_WAREHOUSES:
        return _PIPELINE_WAREHOUSES[spark]
    text = spark.conf.get(WAREHOUSE_SETTING, None)
    return None if not text else Warehouse(json.loads(text))


def set_warehouse(spark: SparkSession, warehouse: Warehouse) -> None:
    """Store the warehouse of a session in its settings, or in this process while it loads a pipeline."""
    if not change_setting(spark, WAREHOUSE_SETTING, json.dumps(dict(warehouse.options))):
        _PIPELINE_WAREHOUSES[spark] = warehouse


def change_setting(spark: SparkSession, key: str, value: str) -> bool:
    """Change a setting of a session, and return whether it has the value.

    False while Spark loads the definitions of a pipeline, which cannot change settings.
    """
    return spark.conf.get(key, None) == value or _set_value(spark, key, value)


def pin_time_zone(spark: SparkSession) -> None:
    """Set the time zone to its value: Spark sends to tasks only what was set, and a default may differ there."""
    _set_value(spark, TIME_ZONE, str(spark.conf.get(TIME_ZONE)))


def _set_value(spark: SparkSession, key: str, value: str) -> bool:
    try:
        spark.conf.set(key, value)
    except PySparkException as error:
        if not (error.getCondition() or "").startswith(_REFUSED_IN_PIPELINES):
            raise
        return False
    return True


def open_in_session(spark: SparkSession, table: str, options: Mapping[str, Any] | None) -> Table | SystemTable:
    """Open a table at its newest schema, by its path or by its name in the warehouse of the session."""
    warehouse = get_warehouse(spark)
    if warehouse is None:
        return open_table(table, options)
    values = {name: option_text(value) for name, value in check_mapping(options, "options").items()}
    given = {"path": table, TABLE_OPTIONS: format_option(TABLE_OPTIONS, values)}
    return parse_source_options(given, warehouse.options).open_source()


def open_session_catalog(spark: SparkSession) -> Catalog | None:
    """Open the warehouse of a session; None if it has none."""
    warehouse = get_warehouse(spark)
    return None if warehouse is None else parse_source_options({"path": "."}, warehouse.options).open_catalog()
