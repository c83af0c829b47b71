"""An array that remembers the largest value met on the way to each of its elements."""

from __future__ import annotations

from typing import Any

import numpy as np


class Recorded(np.ndarray):
    """A NumPy array whose results carry, in `peak`, the largest finite magnitude among their operands and themselves.

    Operands that are plain numbers, such as rates, are exact and do not count.
    Elementwise functions keep peaks by element; a reduction, product or anything else that mixes elements gives
    every element the largest of all.
    """

    peak: Any

    @classmethod
    def of(cls, array: np.ndarray) -> Recorded:
        """The array with its own magnitudes as peaks."""
        made = np.asarray(array).view(cls)
        made.peak = np.abs(np.asarray(array, np.float64))
        return made

    @staticmethod
    def largest(value: Any) -> Any:
        """The peaks of a result."""
        return getattr(value, "peak", np.abs(np.asarray(value, np.float64)))

    def __array_finalize__(self, source: Any) -> None:
        self.peak = getattr(source, "peak", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        options.pop("out", None)
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        by_element = method == "__call__" and ufunc.signature is None
        return _recorded(result, [Recorded.largest(x) for x in inputs if isinstance(x, np.ndarray)], by_element)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = function(*_deep(args), **{key: _deep(value) for key, value in kwargs.items()})
        by_element = function is np.where
        return _recorded(result, [Recorded.largest(x) for x in args if isinstance(x, np.ndarray)], by_element)


def _recorded(result: Any, peaks: list[Any], by_element: bool) -> Any:
    made = np.asarray(result).view(Recorded)
    own = np.abs(np.asarray(result, np.float64))
    merged = own
    for peak in peaks:
        merged = np.maximum(merged, peak if by_element else np.max(peak, initial=0.0))
    made.peak = np.where(np.isfinite(merged), merged, 0.0)
    return made


def _plain(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, Recorded) else x


def _deep(x: Any) -> Any:
    return type(x)(map(_deep, x)) if isinstance(x, (list, tuple)) else _plain(x)
