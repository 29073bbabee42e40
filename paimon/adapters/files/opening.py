"""Which FileIO serves a location, and what of its storage options may travel.

Law: a secret is given to a client and nowhere else. An engine that travels takes the other options with it; in the
other process credentials come from the environment, or from the function that the option `login` names.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence

from paimon.adapters.files.fence import Fence
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.files.store_options import STORES
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.secrets import has_password, without_secrets
from paimon.ports.files import FileIO

LOGIN = "login"
SINGLE_WRITER = "single-writer"
_MAPPED_SHARE = 32
"""A local file up to this part of the memory is mapped: a merge holds many open."""


def files_at(
    location: str, storage: Mapping[str, object], memory_bytes: int, allowed_roots: Sequence[str] = ()
) -> FileIO:
    """The adapter of a path or URL; `memory_bytes` is what an operation may take.

    On local disk links do not lead out of the location and the allowed roots.
    """
    if "://" not in location:
        return LocalFiles(memory_bytes // _MAPPED_SHARE, Fence((location, *allowed_roots)))
    if has_password(location) or "?" in location:
        what = location.partition("://")[0]
        hint = "put user, password and signatures into the storage options; they are kept out of paths and messages"
        raise InvalidRequest(f"the {what}:// URL carries credentials or a query", subject="location", hint=hint)
    options = dict(storage)
    options.update(_logged_in(options.pop(LOGIN, None)))
    if location.partition("://")[0] in STORES and _has_store_client():
        from paimon.adapters.files.store_files import StoreFiles

        single_writer = str(options.pop(SINGLE_WRITER, "false")).lower() == "true"
        return StoreFiles(location, options, single_writer)
    from paimon.adapters.files.fsspec_files import FsspecFiles

    return FsspecFiles(location, options)


def travelling(storage: Mapping[str, object]) -> dict[str, object]:
    """The storage options without secrets."""
    return without_secrets(storage)


def _logged_in(login: object) -> Mapping[str, object]:
    """What the function ``package.module:function`` answers: storage options."""
    if login is None:
        return {}
    module, colon, function = str(login).partition(":")
    try:
        answer = getattr(importlib.import_module(module), function)() if colon else None
    except PaimonError:
        raise
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidRequest(f"login {login!r} cannot be found: {error}", subject=LOGIN) from error
    if not isinstance(answer, Mapping):
        hint = "name a function without arguments as package.module:function; it answers a mapping of storage options"
        raise InvalidRequest(f"login {login!r} answers no storage options", subject=LOGIN, hint=hint)
    return answer


def _has_store_client() -> bool:
    return importlib.util.find_spec("obstore") is not None
