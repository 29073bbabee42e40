"""The warehouse and its options of a configuration file or the environment, for `paimon.connect` and the terminal.

Invariant: no file is read unless the caller or PAIMON_CONFIG names it. A listing shows no secret.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from paimon.domain.errors import InvalidRequest, StorageError, did_you_mean
from paimon.domain.extras import missing_extra
from paimon.domain.secrets import redact_option

WAREHOUSE, VARIABLE = "warehouse", "PAIMON_WAREHOUSE"
_PROFILES, _DEFAULT = "profiles", "default-profile"


@frozen
class Setting:
    """The warehouse, or an option of the catalog."""

    name: str
    # may be a secret
    value: str = field(repr=False)
    # what a user changes to change the value
    origin: str

    def to_record(self) -> dict[str, object]:
        """Return the row of `paimon config`; secrets are masked."""
        return {"name": self.name, "value": redact_option(self.name, self.value), "origin": self.origin}


def read_settings(config: str | None, profile: str | None) -> list[Setting]:
    """Return the settings of a file, else of environment variables that are not empty."""
    config = config or os.environ.get("PAIMON_CONFIG") or None
    profile = profile or os.environ.get("PAIMON_PROFILE") or None
    if config is None and profile is not None:
        hint = "name the file by 'config' or PAIMON_CONFIG"
        raise InvalidRequest(f"Profile {profile!r} needs a file.", subject=profile, hint=hint)
    found = [] if config is None else read_config(config, profile)
    if config is None:
        pairs = [pair.partition("=") for pair in os.environ.get("PAIMON_CATALOG", "").split()]
        if not all(sign for _, sign, _ in pairs):  # the text is not shown: it may be a piece of a password
            hint = "write KEY=VALUE, without blanks, for each option"
            raise InvalidRequest("A part of PAIMON_CATALOG has no '='", subject="PAIMON_CATALOG", hint=hint)
        found = [Setting(name, value, "PAIMON_CATALOG") for name, _, value in pairs]
    warehouse = os.environ.get(VARIABLE)
    if warehouse and all(setting.name != WAREHOUSE for setting in found):
        found.append(Setting(WAREHOUSE, warehouse, VARIABLE))
    return found


def read_config(path: str, profile: str | None = None) -> list[Setting]:
    """Read a file: a profile of TOML if its name ends in ``.toml``, else a YAML mapping of catalog options."""
    try:
        text = Path(path).read_text("utf8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(path, str(error), hint="check the path, and that the file is UTF-8") from error
    if path.endswith(".toml"):
        return _read_profile(path, text, profile)
    if profile is not None:
        hint = "give the file the form of paimon.toml, and a name that ends in .toml"
        raise InvalidRequest(f"File {path!r} has no profiles, because it is YAML.", subject=profile, hint=hint)
    return _to_settings(_read_yaml(path, text), path)


def _read_yaml(path: str, text: str) -> Mapping[str, object]:
    try:
        import yaml
    except ModuleNotFoundError as missing:
        raise missing_extra("A YAML file of settings", "pyyaml") from missing
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:  # it shows a line of the file, which may be a secret
        raise _not_a_config(path) from None
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise _not_a_config(path)
    return found


def _read_profile(path: str, text: str, profile: str | None) -> list[Setting]:
    """Return the settings of a profile of TOML, by default of the one that `default-profile` names."""
    import tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"File {path!r} is not TOML: {error}", subject=path) from error
    for key in found.keys() - {_PROFILES, _DEFAULT}:
        hint = f"known are: {_DEFAULT}, {_PROFILES}"
        raise InvalidRequest(f"File {path!r}: key {key!r} is not known", subject=key, hint=hint)
    profiles, chosen = found.get(_PROFILES, {}), profile or found.get(_DEFAULT)
    if chosen is None:
        hint = f"name one by 'profile' or PAIMON_PROFILE, or set {_DEFAULT!r} in the file"
        raise InvalidRequest(f"File {path!r}: no profile is chosen", subject=path, hint=hint)
    if not isinstance(profiles, dict) or not isinstance(chosen, str) or chosen not in profiles:
        names = profiles if isinstance(profiles, dict) else ()
        raise InvalidRequest(
            f"File {path!r}: profile {chosen!r} does not exist", subject=str(chosen), hint=did_you_mean(chosen, names)
        )
    options = profiles[chosen] if isinstance(profiles[chosen], dict) else {"": {}}
    for key, value in options.items():
        if not isinstance(value, str | int | float):
            name = f"{_PROFILES}.{chosen}.{key}".rstrip(".")
            hint = "write a text, a number, true or false; a name with a dot needs quotes"
            raise InvalidRequest(f"File {path!r}: key {name!r} is not a value", subject=name, hint=hint)
    return _to_settings(options, f"{path}, profile {chosen}")


def _to_settings(options: Mapping[str, object], origin: str) -> list[Setting]:
    """Return the options with values as options have them: ``true`` and not ``True``."""
    texts = {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in options.items() if v is not None}
    return [Setting(name, value, origin) for name, value in texts.items()]


def _not_a_config(path: str) -> InvalidRequest:
    return InvalidRequest(
        f"File {path!r} is not a YAML mapping of catalog options.",
        subject=path,
        hint="write lines such as 'warehouse: /path/to/lake' and 'metastore: filesystem'",
    )
