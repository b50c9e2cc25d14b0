"""Python values and NumPy arrays as Arrow columns, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saccade.data.errors import DataError, one_line
from saccade.data.extra import required

SHAPE, DATA = "__shape__", "__data__"
"""An array is stored as its shape and a flat list of its numbers."""


def array_of(values: Sequence[Any], role: str, *, exact: bool = False) -> Any:
    """The Arrow array of a column's values: numbers, texts, bytes, NumPy arrays, lists and dictionaries, or None.

    Args:
        values: one for each row.
        role: the column's name, for error messages.
        exact: whether numbers in lists keep their 64 bits.
    """
    pyarrow = required("pyarrow")
    absent = [value is None for value in values]
    present = [value for value in values if value is not None]
    if any(isinstance(value, np.ndarray) for value in present):
        return _arrays(values, role)
    if any(isinstance(value, dict) for value in present):
        keys = _keys(present, role)
        columns = {key: [None if value is None else value[key] for value in values] for key in keys}
        inner = [array_of(column, f"{role}.{key}", exact=exact) for key, column in columns.items()]
        return pyarrow.StructArray.from_arrays(inner, names=keys, mask=pyarrow.array(absent))
    if any(_is_rich(value) for value in present):
        if not all(isinstance(value, list | tuple) for value in present):
            raise _mixed(role, "lists and other values")
        lengths = [0 if value is None else len(value) for value in values]
        ends = [0, *np.cumsum(lengths).tolist()]
        starts = [None if none else end for none, end in zip(absent, ends, strict=False)]
        inner = array_of([item for value in present for item in value], f"{role}[]", exact=exact)
        return pyarrow.ListArray.from_arrays(pyarrow.array([*starts, ends[-1]], pyarrow.int32()), inner)
    try:
        found = pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise _mixed(role, one_line(error)[:200]) from None
    leaf = _leaf(found.type)
    types = pyarrow.types
    converts = types.is_binary(leaf) or types.is_string(leaf) or types.is_floating(leaf)
    if converts and len(_kinds(present)) > 1:
        raise _mixed(role, "numbers and true or false" if types.is_floating(leaf) else "text and bytes")
    try:
        return found if exact else cast(found, narrow(found.type))
    except pyarrow.ArrowInvalid:  # an integer that needs 64 bits
        return found


def _arrays(values: Sequence[Any], role: str) -> Any:
    pyarrow = required("pyarrow")
    strangers = {type(value).__name__ for value in values if value is not None and not isinstance(value, np.ndarray)}
    if strangers:
        raise _mixed(role, f"arrays and {', '.join(sorted(strangers))}")
    arrays = [np.zeros(0, dtype=bool) if value is None else value for value in values]
    flat = np.concatenate([array.reshape(-1) for array in arrays])  # promotes to a common type
    if flat.dtype.kind not in "biuf":
        raise _mixed(role, f"an array of {flat.dtype}")
    shapes = pyarrow.array([list(array.shape) for array in arrays], pyarrow.list_(pyarrow.int32()))
    ends = np.cumsum([0, *(array.size for array in arrays)], dtype=np.int32)
    data = pyarrow.ListArray.from_arrays(pyarrow.array(ends), pyarrow.array(flat))
    mask = pyarrow.array([value is None for value in values])
    return pyarrow.StructArray.from_arrays([shapes, data], names=[SHAPE, DATA], mask=mask)


def _keys(values: Sequence[Any], role: str) -> list[str]:
    if not all(isinstance(value, dict) for value in values):
        raise _mixed(role, "dictionaries and other values")
    keys = sorted(values[0])
    for value in values:
        if sorted(value) != keys or not keys:
            raise _mixed(role, f"dictionaries with different keys or no keys ({keys} and {sorted(value)})"[:200])
    return keys


def _is_rich(value: Any) -> bool:
    """Whether a list contains arrays or dictionaries at its lowest level."""
    while isinstance(value, list | tuple) and value:
        value = next((item for item in value if item is not None), None)
    return isinstance(value, dict | np.ndarray)


def _leaf(kind: Any) -> Any:
    while required("pyarrow").types.is_list(kind):
        kind = kind.value_type
    return kind


def _kinds(value: Any) -> set[type]:
    """The types at the lowest level of lists; Arrow would convert bytes among texts, or booleans among numbers."""
    if isinstance(value, list | tuple):
        return set[type]().union(*map(_kinds, value))
    return set() if value is None else {next(kind for kind in (str, bytes, bool, object) if isinstance(value, kind))}


def _mixed(role: str, problem: str) -> DataError:
    return DataError(
        f"Cannot store {role!r}: {problem}. All examples must have the same type: numbers of up to 64 bits, text, "
        "bytes, arrays of numbers, and lists and dictionaries of these."
    )


def narrow(kind: Any) -> Any:
    """The type with 32-bit instead of 64-bit numbers inside lists (token ids, features)."""
    pyarrow = required("pyarrow")
    if not pyarrow.types.is_list(kind):
        return kind
    inner = kind.value_type
    if pyarrow.types.is_int64(inner):
        return pyarrow.list_(pyarrow.int32())
    return pyarrow.list_(pyarrow.float32() if pyarrow.types.is_float64(inner) else narrow(inner))


def merged(one: Any, other: Any, role: str) -> Any:
    """The narrowest type that can represent the values of both."""
    pyarrow = required("pyarrow")
    types = pyarrow.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_list(one) and types.is_list(other):
        return pyarrow.list_(merged(one.value_type, other.value_type, role))
    if types.is_struct(one) and types.is_struct(other) and [f.name for f in one] == [f.name for f in other]:
        return pyarrow.struct([(a.name, merged(a.type, b.type, role)) for a, b in zip(one, other, strict=True)])
    numbers = [types.is_integer(kind) or types.is_floating(kind) for kind in (one, other)]
    if all(numbers):
        return pyarrow.from_numpy_dtype(np.promote_types(one.to_pandas_dtype(), other.to_pandas_dtype()))
    raise _mixed(role, f"{one} in some examples and {other} in others")


def cast(array: Any, kind: Any) -> Any:
    """The array with a wider or narrower type; Arrow's own `cast` loses nulls in lists of nothing else."""
    pyarrow = required("pyarrow")
    if array.type == kind:
        return array
    if pyarrow.types.is_null(array.type):
        return pyarrow.nulls(len(array), kind)
    if pyarrow.types.is_list(kind):
        mask = array.is_null() if array.null_count else None
        return pyarrow.ListArray.from_arrays(array.offsets, cast(array.values, kind.value_type), mask=mask)
    if pyarrow.types.is_struct(kind):
        inner = [cast(array.field(field.name), field.type) for field in kind]
        return pyarrow.StructArray.from_arrays(inner, fields=list(kind), mask=array.is_null())
    return array.cast(kind)


def has_arrays(kind: Any) -> bool:
    """Whether a type contains NumPy arrays."""
    types = required("pyarrow").types
    if types.is_struct(kind):
        return kind.get_field_index(SHAPE) >= 0 or any(has_arrays(field.type) for field in kind)
    return bool(types.is_list(kind) and has_arrays(kind.value_type))


def cells(column: Any) -> Callable[[int], Any]:
    """The function from a row to its value in a column; much faster than Arrow's for arrays and flat lists."""
    types = required("pyarrow").types
    kind = column.type
    if types.is_struct(kind) and kind.get_field_index(SHAPE) >= 0:
        return _array_cells(column)
    if types.is_struct(kind) and has_arrays(kind):
        inner = {field.name: cells(column.field(field.name)) for field in kind}
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return lambda row: {name: cell(row) for name, cell in inner.items()} if valid[row] else None
    if types.is_list(kind) and types.is_list(kind.value_type) and not column.null_count and not has_arrays(kind):
        inside, ends = cells(column.values), column.offsets.to_numpy()
        return lambda row: [inside(place) for place in range(ends[row], ends[row + 1])]
    flat = types.is_list(kind) and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type))
    if not flat or column.null_count or column.values.null_count:
        return lambda row: restored(column[row].as_py(), kind)
    offsets, values = column.offsets.to_numpy(), column.values.to_numpy()
    return lambda row: values[offsets[row] : offsets[row + 1]].tolist()


def _array_cells(column: Any) -> Callable[[int], Any]:
    data, shapes = column.field(DATA), column.field(SHAPE)
    is_bool = required("pyarrow").types.is_boolean(data.type.value_type)
    offsets, valid = data.offsets.to_numpy(), column.is_valid().to_numpy(zero_copy_only=False)
    values = None if is_bool else data.values.to_numpy()  # Arrow packs truth values into bits

    def cell(row: int) -> Any:
        if not valid[row]:
            return None
        start, end = offsets[row], offsets[row + 1]
        if values is None:
            flat = data.values.slice(start, end - start).to_numpy(zero_copy_only=False)
        else:
            flat = values[start:end].copy()  # the file is read-only, an example is not
        return flat.reshape(shapes[row].as_py())

    return cell


def restored(value: Any, kind: Any) -> Any:
    """A value from Arrow, with its arrays restored from their shapes and numbers."""
    if value is None or not has_arrays(kind):
        return value
    if isinstance(value, list):
        return [restored(item, kind.value_type) for item in value]
    if SHAPE in value:
        inner = kind.field(DATA).type.value_type
        return np.array(value[DATA], dtype=inner.to_pandas_dtype()).reshape(value[SHAPE])
    return {name: restored(item, kind.field(name).type) for name, item in value.items()}
