"""What object stores are to be told: one set of words for options that each client spells in its own way.

Law: names of fsspec's clients, of Java's Paimon and of the stores' own tools mean the same; an unknown name is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import parse_duration_millis, parse_int, refused

_S3 = {
    "key": "access_key_id",
    "access_key": "access_key_id",
    "access_key_id": "access_key_id",
    "secret": "secret_access_key",
    "secret_key": "secret_access_key",
    "secret_access_key": "secret_access_key",
    "token": "session_token",
    "session_token": "session_token",
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "region": "region",
    "region_name": "region",
    "default_region": "region",
    "virtual_hosted_style_request": "virtual_hosted_style_request",
    "anon": "skip_signature",
    "skip_signature": "skip_signature",
}
_GCS = {
    "token": "application_credentials",
    "application_credentials": "application_credentials",
    "service_account": "service_account",
    "service_account_key": "service_account_key",
    "endpoint_url": "base_url",
    "base_url": "base_url",
    "anon": "skip_signature",
    "skip_signature": "skip_signature",
}
_AZURE = {
    "account_name": "account_name",
    "account_key": "account_key",
    "sas_token": "sas_key",
    "sas_key": "sas_key",
    "tenant_id": "tenant_id",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "use_emulator": "use_emulator",
    "anon": "skip_signature",
    "skip_signature": "skip_signature",
}
_OF_SCHEME = {"s3": _S3, "s3a": _S3, "gs": _GCS, "gcs": _GCS, "abfs": _AZURE, "abfss": _AZURE, "az": _AZURE}
_PREFIXES = ("fs.s3a.", "s3.", "fs.gs.", "gs.", "fs.azure.", "azure.", "aws_", "google_", "azure_")
_PATH_STYLE = "path_style_access"
_NESTED = ("client_kwargs",)
_MAX_RETRIES = "max_retries"
_RETRY_TIMEOUT = "retry_timeout"
_RETRIES = {_MAX_RETRIES: "20", _RETRY_TIMEOUT: "3 min"}
"""Of one request. The client's own 10 were not enough for thousands of puts on a store that loses 3 replies in 10."""
_LONGEST_MILLIS = 24 * 60 * 60 * 1000
_MIN_WAIT_MILLIS, _MAX_WAIT_MILLIS = 100, 15_000
"""Between two tries of one request, as the client waits."""
STORES = tuple(_OF_SCHEME)
"""The schemes of object stores."""


def client_config(scheme: str, storage: Mapping[str, object]) -> dict[str, object]:
    """The client's options.

    Raises
    ------
    InvalidRequest
        An option that no store of this scheme has, with the nearest name.
    """
    known = _OF_SCHEME[scheme]
    config: dict[str, object] = {}
    for name, value in _flat(storage):
        word = _word(name)
        if value is None:
            continue
        if word in _RETRIES:
            continue  # see `retries`
        if word in (_PATH_STYLE, "path_style") and known is _S3:
            config["virtual_hosted_style_request"] = not _truth(value)
        elif word in known:
            config[known[word]] = value if isinstance(value, bool) else str(value)
        else:
            hint = did_you_mean(word, (*known, *_RETRIES, "path.style.access"))
            raise InvalidRequest(f"{scheme}:// has no storage option {name!r}", subject=name, hint=hint)
    return config


def retries(storage: Mapping[str, object]) -> dict[str, int | timedelta]:
    """How often, and for how long, the client tries one request again: options `max_retries` and `retry_timeout`.

    Raises
    ------
    InvalidRequest
        A value that is no number, or no duration.
    """
    told = {_word(name): str(value) for name, value in _flat(storage) if value is not None}
    wanted = {word: told.get(word, default) for word, default in _RETRIES.items()}
    count = parse_int(wanted[_MAX_RETRIES], _MAX_RETRIES)
    if count < 0:
        raise refused(_MAX_RETRIES, wanted[_MAX_RETRIES], "a whole number from 0")
    millis = parse_duration_millis(wanted[_RETRY_TIMEOUT], _RETRY_TIMEOUT)
    if millis > _LONGEST_MILLIS:
        raise refused(_RETRY_TIMEOUT, wanted[_RETRY_TIMEOUT], "a duration of up to a day")
    return {_MAX_RETRIES: count, _RETRY_TIMEOUT: timedelta(milliseconds=millis)}


def request_policy(storage: Mapping[str, object]) -> RetryPolicy:
    """Return the same options as `retries`, as the policy of the requests that this library makes again.

    Raises
    ------
    InvalidRequest
        A value that is no number, or no duration.
    """
    wanted = retries(storage)
    count, timeout = wanted[_MAX_RETRIES], wanted[_RETRY_TIMEOUT]
    assert isinstance(count, int)
    assert isinstance(timeout, timedelta)
    return RetryPolicy(count, int(timeout / timedelta(milliseconds=1)), _MIN_WAIT_MILLIS, _MAX_WAIT_MILLIS)


def without_retries(storage: Mapping[str, object]) -> dict[str, object]:
    """Return the storage options without those of `retries`."""
    return {name: value for name, value in storage.items() if _word(name) not in _RETRIES}


def _flat(storage: Mapping[str, object]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in storage.items():
        if name in _NESTED and isinstance(value, Mapping):
            found += _flat(value)
        else:
            found.append((name, value))
    return found


def _word(name: str) -> str:
    word = name.lower()
    for prefix in _PREFIXES:
        word = word.removeprefix(prefix)
    return word.replace("-", "_").replace(".", "_")


def _truth(value: object) -> bool:
    return str(value).strip().lower() == "true"
