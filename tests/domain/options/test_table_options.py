"""Table options: known keys, formats, defaults and refusals."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.known_options import ALIASES, OPTIONS
from paimon.domain.options.option import Effect
from paimon.domain.options.parse import parse_duration_millis, parse_levels, parse_memory
from paimon.domain.options.setting import Setting
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_options


def test_defaults_pass_their_own_checks() -> None:
    ours = [option for option in OPTIONS.values() if not option.catalog]
    check_options({option.key: option.default for option in ours if option.default is not None})
    for option in OPTIONS.values():
        for value in option.choices if option.effect is not Effect.REFUSED else ():
            check_options({option.key: value})
    assert not set(ALIASES) & set(OPTIONS)


def test_every_attribute_has_a_value_by_default() -> None:
    settings = {name: s for name, s in vars(TableOptions).items() if isinstance(s, Setting)}
    assert len(settings) > 100
    for name, setting in settings.items():
        assert setting.key in OPTIONS
        getattr(TableOptions(), name)


@pytest.mark.parametrize(
    ("text", "size"), [("128 mb", 128 << 20), ("1g", 1 << 30), ("500", 500), ("500 b", 500), ("2 KB", 2048)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    ("text", "millis"), [("1 h", 3_600_000), ("10s", 10_000), ("250", 250), ("2 d", 172_800_000), ("5 min", 300_000)]
)
def test_durations(text: str, millis: int) -> None:
    assert parse_duration_millis(text) == millis


@given(st.text(max_size=12))
def test_no_text_ends_in_a_bare_error(text: str) -> None:
    for parse in (parse_memory, parse_duration_millis, parse_levels):
        try:
            parse(text)
        except InvalidRequest as error:
            assert error.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckett": "1"}, "Did you mean 'bucket'"),
        ({"bucket": "many"}, "'bucket' has the invalid value 'many'"),
        ({"bucket": "99999999999"}, "32 bits"),
        ({"merge-engine": "newest"}, "partial-update"),
        ({"fields.a.agregate-function": "sum"}, r"fields\.a\.aggregate-function"),
        ({"file-index.blom-filter.columns": "a"}, r"file-index\.bloom-filter\.columns"),
        ({"file-index.bitmap.a.items": "5"}, r"file-index\.bitmap\.a\.version"),
        ({"file-index.bloom-filter.a.items": "many"}, "32 bits"),
        ({"target-file-size": "1 league"}, "128 mb"),
        ({"write-only": "yes"}, "'true' or 'false'"),
        ({"lookup.cache.bloom.filter.fpp": "nan"}, "finite"),
        ({"file.format.per.level": "avro"}, "0:avro"),
        ({"bucket": 4}, "not a text"),
    ],
)
def test_refusals_name_the_option(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_options(options)


def test_known_families_of_options() -> None:
    check_options(
        {
            "fields.a,b.sequence-group": "c",
            "fields.x.y.stats-mode": "none",
            "chain-table.enabled": "false",
            "parquet.page.size": "1000",
            "table-default.bucket": "2",
            "first-row.ignore-delete": "true",
        }
    )
    check_options({"anything": "goes"}, allow_unknown=True)
    with pytest.raises(InvalidRequest):
        check_options({"bucket": "x"}, allow_unknown=True)


@pytest.mark.parametrize(
    ("key", "value", "feature"),
    [
        ("chain-table.enabled", "true", "chain tables"),
        ("metadata.iceberg.storage", "table-location", "metadata of Iceberg"),
        ("query-auth.enabled", "true", "authorization of queries"),
        ("encryption.mechanism", "aes", "encryption of files"),
        ("vector-field", "v", "columns of vectors"),
        ("table-default.chain-table.enabled", "true", "chain tables"),
    ],
)
def test_features_that_are_missing_are_refused_by_name(key: str, value: str, feature: str) -> None:
    with pytest.raises(Unsupported, match=feature):
        check_options({key: value}, allow_unknown=True)


def test_typed_access() -> None:
    options = TableOptions.of(
        {"write.compaction-skip": "true", "file.format.per.level": "0:avro,5:orc", "sequence.field": "a, b"}
    )
    assert options.write_only
    assert [options.file_format_at(level) for level in (0, 1, 5)] == ["avro", "parquet", "orc"]
    assert options.sequence_fields == ("a", "b")
    assert options.num_levels == 6
    assert options.target_file_size_bytes(primary_key=True) == 128 << 20
    assert options.stats_mode_of("x") == "truncate(16)"
    assert pickle.loads(pickle.dumps(options)) == options
    assert options.with_values({"write-only": "false"}) == TableOptions.of(
        {"write-only": "false", "file.format.per.level": "0:avro,5:orc", "sequence.field": "a, b"}
    )


def test_a_value_is_parsed_once_for_each_set_of_texts() -> None:
    texts: list[str | None] = []

    class Options(TableOptions):
        """Options with a setting that records what it parses."""

        counted = Setting("bucket", lambda text, _: texts.append(text) or len(texts))

    options = Options({"bucket": "4"})
    assert (options.counted, options.counted, texts) == (1, 1, ["4"])
    assert (Options({"bucket": "5"}).counted, texts) == (2, ["4", "5"])


def test_parsed_values_are_not_pickled_and_have_one_key_each() -> None:
    options = TableOptions({"bucket": "4"})
    data = pickle.dumps(options)
    settings = [value for value in vars(TableOptions).values() if isinstance(value, Setting)]
    read = [setting.__get__(options) for setting in settings]
    assert pickle.dumps(options) == data
    assert pickle.loads(data) == options
    assert len(options.parsed) == len({setting.key for setting in settings}) == len(read)
