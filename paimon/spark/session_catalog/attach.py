"""Attach a warehouse to a Spark session as a catalog, so that the session's own SQL reads and changes its tables."""

# Spark takes a catalog by the name of a Java class. Here it gets Python objects instead: Py4J gives Java a proxy for
# each, and the calls of Spark's planner come back to this process. Rows never do: tasks read and write them.
#
#     spark.sql("INSERT INTO lake.db.t SELECT … FROM lake.db.s JOIN view …")
#       |  CatalogManager.catalogs["lake"]       CatalogProxy, put there by reflection
#       |    loadTable("db.t")                   TableProxy            columns, partitions, options
#       |      newScanBuilder                    ScanBuilderProxy      columns, predicates, limit of one plan
#       |        build                           ScanProxy             a data frame of `read_scan`, and its size
#       |          toV1TableScan                 FrameRelation.java    its rows
#       |      newWriteBuilder                   WriteBuilderProxy     append, or what is overwritten
#       |        toInsertableRelation.insert     InsertProxy           `paimon.spark.write` of the frame that Spark has
#       |  ExperimentalMethods.extraStrategies    CommandStrategy.java  commands that have no such interface
#
# A class that Spark does not know as an interface must be Java: three small ones, which the compiler in Spark's own
# libraries (Janino, which compiles its queries) compiles when the first catalog is attached.

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from paimon import engines
from paimon.catalog import Catalog
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from paimon.spark.options import check_shared_location
from paimon.spark.session import check_classic, register
from paimon.spark.session_catalog.catalog_proxy import CatalogProxy
from paimon.spark.session_catalog.commands import CommandPlanner
from paimon.spark.session_catalog.jvm import Jvm, find_proxy

_RESERVED = frozenset({"spark_catalog", "system", "session", "builtin", "global_temp"})
"""Names that mean something else to Spark."""
_STRATEGY = "paimon.spark.CommandStrategy"


def attach(
    spark: SparkSession,
    warehouse: str | os.PathLike[str] | Catalog,
    name: str = "lake",
    *,
    storage: Mapping[str, object] | None = None,
    **options: Any,
) -> Catalog:
    """Make a warehouse a catalog of a session: ``spark.sql("SELECT … FROM lake.shop.orders")``.

    Its tables work in SQL and in data frames of this session like those of any other catalog: in `spark.sql`,
    `spark.table`, `saveAsTable`, `writeTo` and `spark.catalog`, together with temporary views and other catalogs.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    warehouse : str, path or Catalog
        The warehouse, or a catalog that `paimon.connect` opened. Tasks must be able to read it.
    name : str
        The name of the catalog in the session.
    storage : mapping of str to object, optional
        Storage options, as in `paimon.connect`.
    **options : object
        Catalog options, as in `paimon.connect`.

    Returns
    -------
    Catalog
        The catalog, which has the same tables in this process.

    Raises
    ------
    InvalidRequest
        The name is not possible or is one of Spark's, or an option is not known.
    AlreadyExists
        The session has a catalog of this name.
    NotFound
        The warehouse is a local directory that does not exist.
    Unsupported
        The session is one of Spark Connect, or the warehouse is in the memory of this process.
    """
    check_classic(spark, "attach", "use a classic Spark session, or paimon.spark.register")
    if not name.isidentifier() or name.lower() in _RESERVED:
        hint = "choose letters, digits and underscores, and no name of Spark such as spark_catalog"
        raise InvalidRequest(f"A catalog cannot be named {name!r}.", subject=name, hint=hint)
    catalog = _open_catalog(warehouse, storage, options)
    jvm = Jvm(spark)
    catalogs = _find_catalogs(jvm)
    if catalogs.contains(name) or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None:
        raise AlreadyExists("catalog", name, hint="choose another name, or call paimon.spark.detach(spark, name) first")
    register(spark)
    jvm.start_callbacks()
    _add_strategy(jvm)
    catalogs.put(name, CatalogProxy(jvm, name, catalog))
    return catalog


def detach(spark: SparkSession, name: str = "lake") -> None:
    """Remove a catalog that `attach` added; data frames of its tables keep working.

    Parameters
    ----------
    spark : SparkSession
        The session.
    name : str
        The name of the catalog.

    Raises
    ------
    NotFound
        No catalog of this name is attached to the session.
    InvalidRequest
        The catalog is the current one of the session.
    Unsupported
        The session is one of Spark Connect.
    """
    check_classic(spark, "detach", "use a classic Spark session")
    catalogs = _find_catalogs(Jvm(spark))
    found = catalogs.get(name)
    if not found.isDefined() or not isinstance(find_proxy(found.get()), CatalogProxy):
        raise NotFound("attached catalog", name, hint="attach it with paimon.spark.attach(spark, warehouse, name)")
    if spark.catalog.currentCatalog() == name:
        hint = "choose another one first: spark.catalog.setCurrentCatalog('spark_catalog')"
        raise InvalidRequest(f"Catalog {name!r} is the current one of the session.", subject=name, hint=hint)
    catalogs.remove(name)


def _open_catalog(warehouse: Any, storage: Mapping[str, object] | None, options: Mapping[str, Any]) -> Catalog:
    if isinstance(warehouse, Catalog):
        if options or storage:
            raise InvalidRequest("A catalog takes no options here.", subject="options", hint="give them to its connect")
        catalog = warehouse
    else:
        catalog = engines.open_warehouse(warehouse, {"storage": storage, **options})
    check_shared_location(catalog.warehouse)
    if "://" not in catalog.warehouse:
        catalog.databases()  # refuses a directory that does not exist
    return catalog


def _find_catalogs(jvm: Jvm) -> Any:
    """Return the private map of the catalogs of a session, for which Spark has no public method."""
    manager = jvm.spark._jsparkSession.sessionState().catalogManager()
    try:
        field = manager.getClass().getDeclaredField("catalogs")
        field.setAccessible(True)
    except Py4JError as error:
        raise Unsupported(f"attach with Spark {jvm.spark.version}", hint="use paimon.spark.connect") from error
    return field.get(manager)


def _add_strategy(jvm: Jvm) -> None:
    experimental = jvm.spark._jsparkSession.experimental()
    strategies = experimental.extraStrategies()
    known = [strategies.apply(number).getClass().getName() for number in range(strategies.size())]
    if _STRATEGY not in known:
        made = jvm.create("CommandStrategy", CommandPlanner(jvm))
        getattr(experimental, "extraStrategies_$eq")(strategies.appended(made))
