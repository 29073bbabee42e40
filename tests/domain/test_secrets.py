"""No secret of the storage options is in a value that is pickled or printed."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.secrets import has_password, is_secret, redact_secrets, remove_secrets

SECRET_NAMES = """secret secret_access_key aws-secret-access-key s3.secret-key token session_token password passphrase
account_key sas_token client_secret connection_string service_account_key key api_key private_key_path"""
OPEN_NAMES = "endpoint endpoint_url region anon path.style.access account_name single-writer login"
VALUES = st.text(st.characters(categories=["L", "N"]), min_size=8, max_size=20)
OPTIONS = st.recursive(
    st.dictionaries(st.sampled_from(f"{SECRET_NAMES} {OPEN_NAMES}".split()), VALUES, max_size=5),
    lambda inner: st.dictionaries(st.sampled_from(("client_kwargs", "config")), inner, max_size=2),
    max_leaves=3,
)


def test_names() -> None:
    assert all(is_secret(name) for name in SECRET_NAMES.split())
    assert not any(is_secret(name) for name in OPEN_NAMES.split())


@given(OPTIONS)
def test_pickles_contain_no_secret(options: dict[str, object]) -> None:
    def names(of: dict[str, object]) -> set[str]:
        return set(of).union(*(names(value) for value in of.values() if isinstance(value, dict)))

    remaining = remove_secrets(options)
    assert not any(is_secret(name) for name in names(remaining))
    assert {name for name in names(options) if not is_secret(name)} >= names(remaining)
    assert {name for name in options if not is_secret(name)} == set(remaining)


@given(VALUES, VALUES, st.text(max_size=10))
def test_texts_are_cleaned(secret: str, inner: str, around: str) -> None:
    options = {"secret": secret, "client_kwargs": {"aws_session_token": inner}}
    redacted = redact_secrets(f"{around}[{secret}]{around}<{inner}>", options)
    assert secret not in redacted.replace(around, "")
    assert inner not in redacted.replace(around, "")
    json.dumps(redacted)


def test_urls() -> None:
    assert redact_secrets("mysql://host/db?user=me&pwd=secret", {}) == "mysql://host/db?user=me&pwd=***"
    assert has_password("s3://me:secret@bucket/path")
    assert not has_password("abfss://container@account.dfs.core.windows.net/lake")
    assert redact_secrets("cannot open sftp://me:secret@host/x", {}) == "cannot open sftp://***@host/x"
