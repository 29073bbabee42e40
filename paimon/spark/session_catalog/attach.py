"""Attach a warehouse to a Spark session as a catalog, so that the session's own SQL reads and changes its tables."""

# Spark takes a catalog by the name of a Java class. Here it gets Python objects instead: Py4J gives Java a proxy for
# each, and the calls of Spark's planner come back to this process. Rows never do: tasks read and write them.
#
#     spark.sql("INSERT INTO lake.db.t SELECT … FROM lake.db.s JOIN view …")
#       |  CatalogManager.catalogs["lake"]       CatalogProxy, put there by reflection
#       |    loadTable("db.t")                   TableProxy            columns, partitions, options
#       |      newScanBuilder                    ScanBuilderProxy      columns, predicates, limit of one plan
#       |        build                           ScanProxy             a data frame of `load_splits`, its size
#       |          toV1TableScan                 FrameRelation.java    its rows
#       |      newWriteBuilder                   WriteBuilderProxy     append, or what is overwritten
#       |        toInsertableRelation.insert     InsertProxy           `paimon.spark.write` of the frame that Spark has
#       |  ExperimentalMethods.extraStrategies    CommandStrategy.java  commands that have no such interface
#       |  SparkSessionExtensions                 SessionRule.java      attaches the catalogs to each later session
#
# A class that Spark does not know as an interface must be Java: small ones, which the compiler in Spark's own
# libraries (Janino, which compiles its queries) compiles at their first use.
#
# A later session has a CatalogManager without the catalog. `newSession()` gets the catalogs of the application, and a
# clone, as each stream has, those of the session from which it has its copy of the strategy.

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from paimon import engines
from paimon.adapters.executors.spark import report_stop
from paimon.catalog import Catalog
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from paimon.spark.options import check_shared_location
from paimon.spark.session import check_classic, check_running, register
from paimon.spark.session_catalog.catalog_proxy import CatalogProxy
from paimon.spark.session_catalog.commands import CommandPlanner
from paimon.spark.session_catalog.jvm import JavaProxy, Jvm, find_proxy

_RESERVED = frozenset({"spark_catalog", "system", "session", "builtin", "global_temp"})
"""Names that mean something else to Spark."""
_STRATEGY = "paimon.spark.CommandStrategy"
_PLANNERS: WeakKeyDictionary[SparkContext, list[CommandPlanner]] = WeakKeyDictionary()
"""The planners of the sessions of an application for which `attach` was called; new sessions get their catalogs."""


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
    Sessions that `spark.newSession()` makes later, and those of the batches of `foreachBatch`, have the catalog, too.

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
        The name is not possible or is one of Spark's, an option is not known, or the session is stopped.
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
    with report_stop(spark):
        if _find_catalogs(jvm).contains(name) or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None:
            hint = "choose another name, or call paimon.spark.detach(spark, name) first"
            raise AlreadyExists("catalog", name, hint=hint)
        jvm.start_callbacks()
        planner, known = _add_catalogs(jvm, {name: catalog}), _find_planners(jvm)
        if planner not in known:
            known.append(planner)
    return catalog


def detach(spark: SparkSession, name: str = "lake") -> None:
    """Remove a catalog from a session; data frames of its tables keep working, and other sessions keep the catalog.

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
        The catalog is the current one of the session, or the session is stopped.
    Unsupported
        The session is one of Spark Connect.
    """
    check_classic(spark, "detach", "use a classic Spark session")
    jvm = Jvm(spark)
    catalogs, planner = _find_catalogs(jvm), _find_planner(jvm)
    if planner is None or name not in planner.attached:
        raise NotFound("attached catalog", name, hint="attach it with paimon.spark.attach(spark, warehouse, name)")
    if spark.catalog.currentCatalog() == name:
        hint = "choose another one first: spark.catalog.setCurrentCatalog('spark_catalog')"
        raise InvalidRequest(f"Catalog {name!r} is the current one of the session.", subject=name, hint=hint)
    catalogs.remove(name)
    del planner.attached[name]


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
    check_running(jvm.spark)
    jvm.spark.range(0)  # the first statement of a session that has no catalogs yet, see `SessionRule`
    return _find_map(jvm)


def _find_map(jvm: Jvm) -> Any:
    manager = jvm.spark._jsparkSession.sessionState().catalogManager()
    try:
        field = manager.getClass().getDeclaredField("catalogs")
        field.setAccessible(True)
    except Py4JError as error:
        raise Unsupported(f"attach with Spark {jvm.spark.version}", hint="use paimon.spark.connect") from error
    return field.get(manager)


def _add_catalogs(jvm: Jvm, added: Mapping[str, Catalog]) -> CommandPlanner:
    """Add catalogs to a session, and its own planner in place of one that a clone has from its parent."""
    register(jvm.spark)
    planner = _find_planner(jvm)
    if planner is None or not planner.jvm.spark._jsparkSession.equals(jvm.spark._jsparkSession):
        planner = CommandPlanner(jvm, {})
        experimental = jvm.spark._jsparkSession.experimental()
        others = [one for one in _list_strategies(jvm) if one.getClass().getName() != _STRATEGY]
        strategies = getattr(getattr(jvm.gateway.jvm, "scala.collection.immutable.Nil$"), "MODULE$")
        for one in (*others, jvm.create("CommandStrategy", planner)):
            strategies = strategies.appended(one)
        getattr(experimental, "extraStrategies_$eq")(strategies)
    catalogs = _find_map(jvm)
    for name, catalog in added.items():
        catalogs.put(name, CatalogProxy(jvm, name, catalog))
        planner.attached[name] = catalog
    return planner


def _list_strategies(jvm: Jvm) -> list[Any]:
    found = jvm.spark._jsparkSession.experimental().extraStrategies()
    return [found.apply(number) for number in range(found.size())]


def _find_planner(jvm: Jvm) -> CommandPlanner | None:
    """Return the planner of commands of a session, or, in a new clone, that of its parent."""
    for strategy in _list_strategies(jvm):
        if strategy.getClass().getName() == _STRATEGY:
            found = find_proxy(strategy.planner())
            return found if isinstance(found, CommandPlanner) else None
    return None


def _find_planners(jvm: Jvm) -> list[CommandPlanner]:
    """Return the part of `_PLANNERS` of an application; the first call makes its new sessions get catalogs."""
    context = jvm.spark.sparkContext
    if context not in _PLANNERS:
        _PLANNERS[context] = []
        rule = jvm.create("SessionRule", NewSessionProxy(jvm))
        jvm.spark._jsparkSession.extensions().injectHintResolutionRule(rule)
    return _PLANNERS[context]


def _list_shared(planners: Iterable[CommandPlanner]) -> dict[str, Catalog]:
    """Return the catalogs of all sessions, without names that mean different warehouses in two sessions."""
    found: dict[str, list[Catalog]] = {}
    for planner in planners:
        for name, catalog in planner.attached.items():
            found.setdefault(name, []).append(catalog)
    return {name: same[0] for name, same in found.items() if len({catalog.warehouse for catalog in same}) == 1}


class NewSessionProxy(JavaProxy):
    """The function that `SessionRule` calls with each new session."""

    class Java:
        """The interfaces."""

        implements = ("java.util.function.Consumer",)

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm

    def accept(self, session: Any) -> None:
        """Attach the catalogs of the parent of a clone, and else those of the application."""
        jvm = Jvm(SparkSession(self.jvm.spark.sparkContext, session))
        parent = _find_planner(jvm)
        added = dict(parent.attached) if parent is not None else _list_shared(_find_planners(jvm))
        if added:
            _add_catalogs(jvm, added)

    def andThen(self, after: Any) -> Any:
        """Return nothing; Spark does not compose this function."""
