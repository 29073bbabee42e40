"""Select the FileIO of a location.

Invariant: only the client of a storage receives secrets. A pickled engine contains the other options. In the other
process, credentials come from the environment, or from the function that the option `login` names.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from functools import partial

from paimon.adapters.files.allowed_roots import AllowedRoots
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.files.routed_files import route_files
from paimon.adapters.files.store_options import SINGLE_WRITER, STORES
from paimon.adapters.plugins import STORAGES, list_offers, open_storage
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.secrets import has_password
from paimon.ports.files import FileIO

LOGIN = "login"
_LOCAL = "/"
_OWN_SCHEMES = (*STORES, "memory", "file")
"""Storages that a package cannot replace."""
_MAPPED_SHARE = 32
"""A local file up to this share of the memory budget is mapped, because a merge has many files open."""


def files_at(
    location: str, storage: Mapping[str, object], memory_bytes: int, allowed_roots: Sequence[str] = ()
) -> FileIO:
    """Create the adapter of an absolute local path or a URL. No request is sent yet.

    The storage option `login` names a function that returns more options. Symbolic links may lead to `location` and to
    `allowed_roots`. These may be in other storages, whose options `storage` has under their URLs. A URL with
    credentials or a query is refused.
    """
    own_options = select_options(location, location, storage)
    own = _files_of_store(location, own_options, memory_bytes, (location, *allowed_roots))
    stores = {_store_of(root) for root in allowed_roots} - {_store_of(location)}
    others = {
        store: partial(_files_of_store, store, select_options(store, location, storage), memory_bytes, allowed_roots)
        for store in stores
    }
    if _LOCAL in others:
        others["file:"] = others[_LOCAL]
    return route_files(own, others)


def _store_of(location: str) -> str:
    """Return how the paths of a storage begin, such as ``s3://bucket/``; ``/`` for the local disk."""
    scheme, colon, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/" if colon else _LOCAL


def select_options(place: str, location: str, storage: Mapping[str, object]) -> Mapping[str, object]:
    """Return the storage options of a place: those under its own URL, else the common ones where they can be meant."""
    own = {name: value for name, value in storage.items() if "://" in name}
    common = {name: value for name, value in storage.items() if name not in own}
    for name, given in own.items():
        if _store_of(name) == _store_of(place) and isinstance(given, Mapping):
            return given
    is_meant = "://" not in location or location.partition("://")[0] == place.partition("://")[0]
    return common if is_meant else {}


def _files_of_store(
    location: str, storage: Mapping[str, object], memory_bytes: int, allowed_roots: Sequence[str]
) -> FileIO:
    if "://" not in location:
        return LocalFiles(memory_bytes // _MAPPED_SHARE, AllowedRoots(tuple(allowed_roots)))
    if has_password(location) or "?" in location:
        scheme = location.partition("://")[0]
        hint = "pass user, password and signatures as storage options, which never appear in paths and messages"
        raise InvalidRequest(
            f"Location of {scheme}:// carries credentials or a query in its URL", subject="location", hint=hint
        )
    options = dict(storage)
    options.update(_call_login(options.pop(LOGIN, None)))
    scheme = location.partition("://")[0]
    if scheme not in _OWN_SCHEMES and scheme in list_offers(STORAGES):
        return open_storage(scheme, location, options, _pop_single_writer(options))
    if scheme in STORES and _has_store_client():
        from paimon.adapters.files.store_files import StoreFiles

        single_writer = _pop_single_writer(options)
        return StoreFiles(location, options, single_writer)
    from paimon.adapters.files.fsspec_files import FsspecFiles

    return FsspecFiles(location, options)


def _pop_single_writer(options: dict[str, object]) -> bool:
    return str(options.pop(SINGLE_WRITER, "false")).lower() == "true"


def _call_login(login: object) -> Mapping[str, object]:
    """Call the function ``package.module:function``, and return its storage options."""
    if login is None:
        return {}
    module, colon, function = str(login).partition(":")
    try:
        options = getattr(importlib.import_module(module), function)() if colon else None
    except PaimonError:
        raise
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidRequest(
            f"Storage option 'login': function {str(login)!r} cannot be found: {error}", subject=LOGIN
        ) from error
    if not isinstance(options, Mapping):
        hint = "name a function without arguments as package.module:function that returns a mapping"
        raise InvalidRequest(
            f"Storage option 'login': {str(login)!r} returns no storage options", subject=LOGIN, hint=hint
        )
    return options


def _has_store_client() -> bool:
    return importlib.util.find_spec("obstore") is not None
