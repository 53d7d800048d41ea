"""Small arrays of symbols: of floats in double precision, and of constants.

An array does what is written here and nothing else, so that no method of NumPy is taken for another. Only
what a function makes itself, of floats, may be written into: whole numbers would be truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.program.recorder import RECORDERS, NotTracedError
from spaql.program.symbols import OPERATORS, Elementwise, Symbol, apply, lifted

_SUM_UNIT = 2.0**-24
"""Of a sum of products in single precision, 2**-23: more than rounding in any order, of up to 100 terms."""
_IN_ORDER = 2
"""Terms of which NumPy, Numba and BLAS return the same sum but for a fused product."""


class Array(Elementwise):
    """An array whose elements are symbols or constants.

    Parameters
    ----------
    values
        The elements, as objects.
    frozen
        Why nothing may be written into it; empty if it may.
    """

    __slots__ = ("_frozen", "values")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: NDArray[Any], frozen: str = "") -> None:
        self.values = values
        self._frozen = frozen

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "size", "ndim"):
            return getattr(self.values, name)
        raise NotTracedError(f"{name} of an array is not traced: write a loop over its elements")

    def copy(self) -> Array:
        """Return an array with the same elements."""
        return array_of(self)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self.values)))

    def __getitem__(self, key: Any) -> Any:
        element = self.values[key]
        return Array(element, self._frozen) if isinstance(element, np.ndarray) else element

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._frozen:
            raise NotTracedError(f"this array is not written into: {self._frozen}")
        if isinstance(self.values[key], np.ndarray):
            self.values[key] = array_of(value, float).values
        elif isinstance(value, Elementwise):
            raise NotTracedError("an element of an array is set to an array")
        else:
            self.values[key] = double(value)

    def operated(self, operator: str, first: Any, second: Any) -> Array:
        """Return the array of an operation on each element."""
        return broadcast(lambda a, b: apply(OPERATORS[operator], lifted(a), lifted(b)), first, second)

    def __iadd__(self, other: Any) -> Array:
        self[...] = self + other
        return self

    def __isub__(self, other: Any) -> Array:
        self[...] = self - other
        return self

    def __imul__(self, other: Any) -> Array:
        self[...] = self * other
        return self

    def __itruediv__(self, other: Any) -> Array:
        self[...] = self / other
        return self

    def __neg__(self) -> Array:
        return broadcast(lambda x: apply("neg", lifted(x)), self)

    def __abs__(self) -> Array:
        return broadcast(lambda x: apply("abs", lifted(x)), self)

    def __pow__(self, power: Any) -> Array:
        return broadcast(lambda x: lifted(x) ** power, self)

    def __mod__(self, other: Any) -> Array:
        return broadcast(lambda x: lifted(x) % other, self)

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __eq__(self, other: Any) -> Any:
        raise NotTracedError("a comparison of arrays: compare their elements")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __bool__(self) -> bool:
        raise NotTracedError("the truth of an array: compare its elements")

    def __str__(self) -> str:
        raise NotTracedError("an array is written as text, which is not traced")

    def __format__(self, form: str) -> str:
        raise NotTracedError("an array is written as text, which is not traced")

    __repr__ = __str__


def _objects(values: Any) -> NDArray[Any]:
    """Return an array of objects; NumPy makes an element of one without dimensions."""
    if isinstance(values, np.ndarray):
        return values
    box = np.empty((), object)
    box[()] = values
    return box


def broadcast(function: Callable[..., Any], *operands: Any) -> Array:
    """Return the array of a function of the elements of several, or of one for all."""
    values = [x.values if isinstance(x, Array) else _objects(x) for x in operands]
    elements = _objects(np.frompyfunc(function, len(values), 1)(*values))
    floats = all(lifted(x).precision in ("double", "literal") for x in elements.ravel())
    return Array(
        elements, "" if floats else "it is not of floats in double precision; write whole numbers as 1.0"
    )


def double(x: Any) -> Symbol:
    """Return a number in double precision."""
    return Symbol(lifted(x).row, "double")


def array_of(values: Any, dtype: Any = None) -> Array:
    """Return the array of numbers, of tuples or lists of them, or of arrays.

    Of whole numbers alone, it is one of whole numbers, which may not be written into.
    """
    objects = np.array(_plain(values), dtype=object)
    elements = [lifted(x) for x in objects.ravel()]
    kinds = {x.precision for x in elements}
    if "single" in kinds:
        raise NotTracedError("an array in single precision: write np.float64(x) for x")
    if kinds == {"whole"} and dtype is None:
        return Array(objects, "it holds whole numbers; write them as floats, such as 1.0")
    return broadcast(double, Array(objects))


def _plain(values: Any) -> Any:
    if isinstance(values, Array):
        return values.values.tolist()
    return [_plain(x) for x in values] if isinstance(values, tuple | list) else values


def captured(values: NDArray[Any]) -> Array:
    """Return an array of constants that a function takes from outside."""
    if values.dtype == np.float32:
        elements = broadcast(lifted, Array(values)).values
    elif values.dtype in (np.float64, np.int64, np.bool_):
        elements = values.astype(object)
    else:
        raise NotTracedError(f"an array of {values.dtype} is used: make it one of floats in double precision")
    return Array(elements, "it is made outside of the function; make a copy with np.array")


def _product(first: Any, second: Any) -> Any:
    """Return the matrix product."""
    if not isinstance(first, Array) or not isinstance(second, Array):
        return NotImplemented
    a = first.values
    b = second.values
    if not 1 <= a.ndim <= 2 or not 1 <= b.ndim <= 2 or a.shape[-1] != b.shape[0]:
        raise NotTracedError("@ is traced for vectors and matrices of matching shapes")
    rows = np.atleast_2d(a)
    columns = b[:, np.newaxis] if b.ndim == 1 else b
    product = np.empty((len(rows), columns.shape[1]), object)
    for i in range(len(rows)):
        for j in range(columns.shape[1]):
            product[i, j] = _dot(rows[i].tolist(), columns[:, j].tolist())
    result = product.reshape(a.shape[:-1] + b.shape[1:])
    return Array(result) if result.ndim else result[()]


def _dot(first: list[Any], second: list[Any]) -> Symbol:
    """Return a sum of products, with an error that covers every order of summation."""
    products = [apply("mul", lifted(x), lifted(y)) for x, y in zip(first, second, strict=True)]
    total = sum(products[1:], products[0])
    if len(products) <= _IN_ORDER:
        return total
    sizes = [abs(x) for x in products]
    unit = sum(sizes[1:], sizes[0]) * _SUM_UNIT
    return total + (Symbol(RECORDERS[-1].row("single", unit.row), "double") - unit)  # type: ignore[no-any-return]
