"""Translate storage options to the options of obstore's clients, and read the limits of repeated requests.

Invariant: the names of fsspec's clients, of Java's Paimon and of the stores' own tools mean the same. An unknown name
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import bad_value_error, parse_duration_millis, parse_int

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
_SLOW_REQUEST = "slow_request"
_RETRIES = {_MAX_RETRIES: "20", _RETRY_TIMEOUT: "3 min", _SLOW_REQUEST: "10 s"}
"""The limits of one request, and when it is logged. obstore's default of 10 was too low for thousands of puts with 30 %
lost replies."""
_LONGEST_MILLIS = 24 * 60 * 60 * 1000
_MIN_WAIT_MILLIS, _MAX_WAIT_MILLIS = 100, 15_000
"""The waits between two attempts of one request, equal to those of the client."""
SINGLE_WRITER = "single-writer"
"""The option that says that no other process writes."""
STORES = tuple(_OF_SCHEME)
"""The schemes of object stores."""


def client_config(scheme: str, storage: Mapping[str, object]) -> dict[str, object]:
    """Return the client's options, without those of `retry_config`; refuse options that no store has."""
    known = _OF_SCHEME[scheme]
    config: dict[str, object] = {}
    for name, value in _flatten_options(storage):
        known_name = _normalize_name(name)
        if value is None or known_name in _RETRIES:
            continue
        if known_name in (_PATH_STYLE, "path_style") and known is _S3:
            config["virtual_hosted_style_request"] = not _is_true(value)
        elif known_name in known:
            config[known[known_name]] = value if isinstance(value, bool) else str(value)
        else:
            hint = did_you_mean(known_name, (*known, *_RETRIES, "path.style.access"))
            raise InvalidRequest(f"Storage option {name!r} is not known for {scheme}://", subject=name, hint=hint)
    return config


def retry_config(storage: Mapping[str, object]) -> dict[str, int | timedelta]:
    """Return the limits of the client's retries of one request: the options `max_retries` and `retry_timeout`."""
    given = {_normalize_name(name): str(value) for name, value in _flatten_options(storage) if value is not None}
    values = {name: given.get(name, _RETRIES[name]) for name in (_MAX_RETRIES, _RETRY_TIMEOUT)}
    count = parse_int(values[_MAX_RETRIES], _MAX_RETRIES)
    if count < 0:
        raise bad_value_error(_MAX_RETRIES, values[_MAX_RETRIES], "a whole number from 0")
    millis = parse_duration_millis(values[_RETRY_TIMEOUT], _RETRY_TIMEOUT)
    if millis > _LONGEST_MILLIS:
        raise bad_value_error(_RETRY_TIMEOUT, values[_RETRY_TIMEOUT], "a duration of up to a day")
    return {_MAX_RETRIES: count, _RETRY_TIMEOUT: timedelta(milliseconds=millis)}


def request_policy(storage: Mapping[str, object]) -> RetryPolicy:
    """Return the limits of `retry_config` as the policy of the requests that this library repeats."""
    config = retry_config(storage)
    count, timeout = config[_MAX_RETRIES], config[_RETRY_TIMEOUT]
    assert isinstance(count, int)
    assert isinstance(timeout, timedelta)
    return RetryPolicy(count, int(timeout / timedelta(milliseconds=1)), _MIN_WAIT_MILLIS, _MAX_WAIT_MILLIS)


def slow_millis(storage: Mapping[str, object]) -> int:
    """Return the option `slow_request`: the time after which a request is logged."""
    for name, value in _flatten_options(storage):
        if _normalize_name(name) == _SLOW_REQUEST and value is not None:
            return parse_duration_millis(str(value), _SLOW_REQUEST)
    return parse_duration_millis(_RETRIES[_SLOW_REQUEST], _SLOW_REQUEST)


def without_retries(storage: Mapping[str, object]) -> dict[str, object]:
    """Return the storage options without those of `retry_config`."""
    return {name: value for name, value in storage.items() if _normalize_name(name) not in _RETRIES}


def _flatten_options(storage: Mapping[str, object]) -> list[tuple[str, object]]:
    """Return all options with those of nested mappings."""
    found: list[tuple[str, object]] = []
    for name, value in storage.items():
        if name in _NESTED and isinstance(value, Mapping):
            found += _flatten_options(value)
        else:
            found.append((name, value))
    return found


def _normalize_name(name: str) -> str:
    """Return an option name without the prefix of a tool, in lower case with underscores."""
    known_name = name.lower()
    for prefix in _PREFIXES:
        known_name = known_name.removeprefix(prefix)
    return known_name.replace("-", "_").replace(".", "_")


def _is_true(value: object) -> bool:
    return str(value).strip().lower() == "true"
