"""Render Arrow columns as columns of JSON texts or of plain texts, without a loop over their rows.

Invariant: a JSON text represents its value exactly. Decimals, dates, times, NaN and infinities are JSON strings, binary
values are Base64, and a map is a list of pairs. Only binary values and strings with rare control characters are
rendered one by one.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.time_text import format_times
from paimon.domain.text_layout import NULL_SIGN
from paimon.domain.types.arrow_arrays import make_array, make_scalar

_NEEDS_ESCAPE = r'["\\\x00-\x1f]'
_RARE_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"
# Also marks that change the direction of the text after them, and line ends of Unicode.
_TERMINAL_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"


def to_json_lines(batch: pa.RecordBatch) -> pa.StringArray:
    """Render each row as a JSON object that ends with a newline. No text is null."""
    return _to_json_objects(
        batch.schema.names, [to_json_texts(column) for column in batch.columns], batch.num_rows, "\n"
    )


def to_json_texts(array: pa.Array) -> pa.StringArray:
    """Render each value as JSON; a null becomes ``null``."""
    return pc.fill_null(_to_json_texts(array), text_scalar("null"))


def to_plain_texts(array: pa.Array) -> pa.StringArray:
    """Render values on one line each, null as `NULL_SIGN`; escape controls, which could command a terminal."""
    kind = array.type
    if pa.types.is_nested(kind):
        texts = _to_json_texts(array)
    elif pa.types.is_decimal(kind):
        texts = _to_decimal_texts(array)
    elif _is_binary(kind):
        texts = _to_base64_texts(array)
    else:
        texts = _to_texts(array)
    return pc.fill_null(_replace_controls(texts), text_scalar(NULL_SIGN))


@lru_cache(maxsize=1_000)
def text_scalar(text: str) -> pa.StringScalar:
    """Return a text as an argument of Arrow's functions, which would load pandas for a text of Python."""
    return make_scalar(text, pa.string())


def _to_json_texts(array: pa.Array) -> pa.StringArray:
    kind = array.type
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return array.cast(pa.string())
    if pa.types.is_floating(kind):
        return _to_float_texts(array)
    if pa.types.is_decimal(kind):
        return _quote_texts(_to_decimal_texts(array))
    if _is_binary(kind):
        return _quote_texts(_to_base64_texts(array))
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return _keep_nulls(array, _to_json_objects(names, [to_json_texts(a) for a in array.flatten()], len(array), ""))
    if pa.types.is_map(kind):
        keys, items = (_slice_lists(array.offsets, part) for part in (array.keys, array.items))
        pairs = _join_texts("[", to_json_texts(keys.values), ", ", to_json_texts(items.values), "]")
        return _keep_nulls(array, _to_bracketed_lists(pa.ListArray.from_arrays(keys.offsets, pairs)))
    if pa.types.is_fixed_size_list(kind):
        return _to_json_texts(array.cast(pa.list_(kind.value_type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lists = _slice_lists(array.offsets.cast(pa.int32()), array.values)
        texts = to_json_texts(lists.values)
        return _keep_nulls(array, _to_bracketed_lists(pa.ListArray.from_arrays(lists.offsets, texts)))
    texts = _to_texts(array)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return _quote_texts(_escape_texts(texts) if is_text else texts)


def _to_texts(array: pa.Array) -> pa.StringArray:
    is_day = pa.types.is_date(array.type) or pa.types.is_timestamp(array.type)
    return format_times(array) if is_day else array.cast(pa.string())


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _join_texts(*parts: str | pa.StringArray) -> pa.StringArray:
    """Concatenate the texts of each row; the result is null where one of them is null."""
    return pc.binary_join_element_wise(*(text_scalar(p) if isinstance(p, str) else p for p in parts), text_scalar(""))


def _quote_texts(texts: pa.StringArray) -> pa.StringArray:
    return _join_texts('"', texts, '"')


def _to_json_objects(names: list[str], columns: list[pa.StringArray], rows: int, end: str) -> pa.StringArray:
    if not names:
        return make_array(["{}" + end] * rows, pa.string())
    parts: list[str | pa.StringArray] = []
    for name, column in zip(names, columns, strict=True):
        parts += [("{" if not parts else ", ") + json.dumps(name, ensure_ascii=False) + ": ", column]
    return _join_texts(*parts, "}" + end)


def _slice_lists(offsets: pa.Int32Array, values: pa.Array) -> pa.ListArray:
    """Make lists of only the values that the offsets refer to, because a slice keeps the values of the whole array."""
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pa.ListArray.from_arrays(pc.subtract(offsets, first), values.slice(first, last - first))


def _to_bracketed_lists(lists: pa.ListArray) -> pa.StringArray:
    return _join_texts("[", pc.binary_join(lists, text_scalar(", ")), "]")


def _keep_nulls(array: pa.Array, texts: pa.StringArray) -> pa.StringArray:
    return texts if not array.null_count else pc.if_else(array.is_valid(), texts, pa.nulls(1, pa.string())[0])


def _escape_texts(texts: pa.StringArray) -> pa.StringArray:
    if not pc.any(pc.match_substring_regex(texts, _NEEDS_ESCAPE)).as_py():
        return texts
    if pc.any(pc.match_substring_regex(texts, _RARE_CONTROL)).as_py():
        quoted = (None if text is None else json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.to_pylist())
        return pa.array(quoted, pa.string())
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        texts = pc.replace_substring(texts, character, escape)
    return texts


def _replace_controls(texts: pa.StringArray) -> pa.StringArray:
    for character, escape in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        texts = pc.replace_substring(texts, character, escape)
    return pc.replace_substring_regex(texts, _TERMINAL_CONTROL, "\ufffd")


def _to_float_texts(array: pa.Array) -> pa.StringArray:
    """Render numbers with a point or an exponent, so that a reader that infers types gets floats."""
    texts = array.cast(pa.string())
    texts = pc.if_else(pc.match_substring_regex(texts, r"^-?\d+$"), _join_texts(texts, ".0"), texts)
    if pc.all(pc.is_finite(array)).as_py() is not False:
        return texts
    names = pc.if_else(pc.is_nan(array), '"NaN"', pc.if_else(pc.greater(array, 0), '"Infinity"', '"-Infinity"'))
    return pc.if_else(pc.is_finite(array), texts, names)


def _to_decimal_texts(array: pa.Array) -> pa.StringArray:
    """Render decimals with all digits of their scale; Arrow's cast writes small numbers with an exponent."""
    kind, scale = array.type, array.type.scale
    if scale <= 0:
        return array.cast(pa.string())
    if pa.types.is_decimal256(kind):
        whole = pa.decimal256(76, 0)
    else:
        array, whole = array.cast(pa.decimal128(38, scale)), pa.decimal128(38, 0)
    unscaled = pa.Array.from_buffers(whole, len(array), array.buffers(), offset=array.offset)
    texts = unscaled.cast(pa.string())
    digits = pc.utf8_lpad(pc.replace_substring(texts, "-", ""), scale + 1, "0")
    sign = pc.if_else(pc.starts_with(texts, "-"), text_scalar("-"), text_scalar(""))
    return _join_texts(sign, pc.utf8_slice_codeunits(digits, 0, -scale), ".", pc.utf8_slice_codeunits(digits, -scale))


def _to_base64_texts(array: pa.Array) -> pa.StringArray:
    texts = (None if value is None else b64encode(value).decode("ascii") for value in array.to_pylist())
    return pa.array(texts, pa.string())
