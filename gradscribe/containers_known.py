# SPDX-License-Identifier: Apache-2.0
"""The containers that are known: pandas' Series and DataFrame, xarray's DataArray and Dataset, pint's Quantity.

Each function here runs when an object of its package is met, and finds the package in sys.modules.

- pandas: the values are one array of numbers.  A gradient has the same index, columns and name.
- xarray: the values of a DataArray are its data, those of a Dataset a dict of arrays by name.  A gradient has the same
  dimensions, coordinates and name, and no attributes, since those describe the quantity itself ("units": "K").
- pint: the values are in root units, which are coherent: f of such numbers is the number of f in its root unit.  So
  quantities in metres and in feet may meet.  An adjoint of x has the unit of the result over that of x.

Source: International vocabulary of metrology (VIM), 3rd edition, JCGM 200:2012, section 1.14: coherent units.
"""
import sys
from typing import Any

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.containers import ADAPTERS, register_container

NUMBERS = "biufc"


def _pandas():
    pandas: Any = sys.modules["pandas"]

    def of_series(labels, values):
        return pandas.Series(values, index=labels[0], name=labels[1])

    def of_frame(labels, values):
        return pandas.DataFrame(values, index=labels[0], columns=labels[1])

    def same_series(a, b):
        return a[0].identical(b[0]) and type(a[1]) is type(b[1]) and a[1] == b[1]

    def same_frame(a, b):
        return a[0].identical(b[0]) and a[1].identical(b[1])

    def square(y, x, values):
        return pandas.DataFrame(values, index=y[0], columns=x[0])

    def entry(series, axis):
        return _column(series)[0], series.index

    def row(frame, axis):
        index, columns = (frame.index, frame.columns) if axis % 2 == 0 else (frame.columns, frame.index)
        return pandas.Series(np.take(_columns(frame), 0, axis), index=columns), index

    def batch(index, y, values, axis):
        """A Series of numbers, a DataFrame of Series; arrays of arrays."""
        if isinstance(y, pandas.Series):
            index, columns = (index, y.index) if axis == 0 else (y.index, index)
            return pandas.DataFrame(values, index=index, columns=columns)
        return pandas.Series(values, index=index) if values.ndim == 1 else values

    def aligned(a, b):
        return a.equals(b)
    register_container(pandas.Series, _column, lambda s: (s.index, s.name), of_series, same=same_series, outer=square,
                       fits=lambda a, b: a[0].equals(b[0]), along=(entry, aligned, batch))
    register_container(pandas.DataFrame, _columns, lambda d: (d.index, d.columns), of_frame, same=same_frame,
                       fits=lambda a, b: a[0].equals(b[0]) and a[1].equals(b[1]), along=(row, aligned, batch))


def _column(series):
    if not isinstance(series.dtype, np.dtype) or series.dtype.kind not in NUMBERS:
        raise KindError(f"a Series of {series.dtype} is given: it is not one NumPy array of numbers", None,
                        'Convert it: series.astype("float64").')
    return _writable(series.to_numpy())


def _columns(frame):
    other = [str(name) for name, dtype in frame.dtypes.items()
             if not isinstance(dtype, np.dtype) or dtype.kind not in NUMBERS]
    made = None if other else frame.to_numpy()
    if made is None or made.dtype.kind not in NUMBERS:
        raise KindError(f"a DataFrame is given that is not one NumPy array of numbers: see {', '.join(other[:5])}"
                        if other else "a DataFrame is given with columns of numbers and of bool", None,
                        'Choose the columns of numbers, or convert: frame.astype("float64").')
    return _writable(made)


def _writable(values):
    """An array that compiled code takes: pandas gives views that are not writable."""
    return values if values.flags.writeable else values.copy()


def _xarray():
    xarray: Any = sys.modules["xarray"]

    def of_array(labels, values):
        dims, coords, name = labels
        return xarray.DataArray(values, coords=coords, dims=dims, name=name)

    def of_set(labels, values):
        dims, coords = labels
        return xarray.Dataset({name: (dims[name], values[name]) for name in dims}, coords=coords)

    def same_array(a, b):
        return a[0] == b[0] and a[2] == b[2] and a[1].identical(b[1])

    def same_set(a, b):
        return fits_set(a, b) and a[1].identical(b[1])

    def fits_set(a, b):
        return a[0] == b[0] and list(a[0]) == list(b[0]) and a[1].equals(b[1])

    def outer(y, x, values):
        """Dimensions of y, then those of x; of two of one name, the second is called name_in, or name_in_in..."""
        taken: dict = {}
        for d in x[0]:
            name = d
            while name in y[0] or name in taken.values() or name != d and name in x[0]:
                name = f"{name}_in"
            taken[d] = name
        coords = {**_indexed(y), **{taken[d]: v for d, v in _indexed(x).items()}}
        return xarray.DataArray(values, coords=coords, dims=(*y[0], *taken.values()))

    def first(array, axis):
        """The example, and an array along the mapped dimension, with the coordinates of that alone."""
        dim = array.dims[axis]
        rest = array.isel({d: 0 for d in array.dims if d != dim}, drop=True).drop_attrs(deep=False)
        return array.isel({dim: 0}, drop=True), rest.copy(data=np.zeros(rest.shape)).rename(None)

    def aligned(a, b):
        return a.equals(b)

    def batch(axis_of, y, values, axis):
        """A DataArray; an array of arrays, whose dimensions have no names."""
        dim, = axis_of.dims
        if not isinstance(y, xarray.DataArray):
            return xarray.DataArray(values, dims=(dim,), coords=axis_of.coords) if values.ndim == 1 else values
        if dim in y.dims:
            return values
        dims, coords = list(y.dims), axis_of.coords.to_dataset().merge(y.coords.to_dataset()).coords
        dims.insert(axis, dim)
        return xarray.DataArray(values, dims=dims, coords=coords, name=y.name)

    def _indexed(labels):
        return {d: labels[1][d].values for d in labels[0] if d in labels[1]}
    register_container(xarray.DataArray, _numbers, lambda a: (a.dims, a.coords.copy(), a.name), of_array,
                       same=same_array, outer=outer, fits=lambda a, b: a[0] == b[0] and a[1].equals(b[1]),
                       along=(first, aligned, batch))
    register_container(xarray.Dataset, lambda d: {name: _numbers(d[name]) for name in d.data_vars},
                       lambda d: ({name: d[name].dims for name in d.data_vars}, d.coords.copy()), of_set, same=same_set,
                       fits=fits_set)


def _numbers(array):
    if array.dtype.kind not in NUMBERS:
        named = "" if array.name is None else f" ({array.name})"
        raise KindError(f"a DataArray{named} of {array.dtype} is given: it is not an array of numbers", None,
                        "Convert it: array.astype(float), or leave it out of a Dataset: dataset.drop_vars(name).")
    return array.data


def _pint():
    pint: Any = sys.modules["pint"]

    def in_root(quantity):
        if not quantity._is_multiplicative:
            raise KindError(f"a quantity in {quantity.units} is given, whose zero is not that of the quantity", None,
                            'Convert it first: quantity.to("kelvin"), or to_base_units() where it is a logarithm.')
        root = quantity.to_root_units().magnitude
        return root[()] if isinstance(root, np.ndarray) and not root.shape else root

    def of_root(units, values):
        found = units._REGISTRY
        factor = found.Quantity(1.0, units).to_root_units().magnitude
        if factor == 1.0:
            return found.Quantity(values, units)
        if isinstance(values, (np.ndarray, np.generic)) and values.dtype.kind in "fc":
            factor = values.real.dtype.type(factor)
        return found.Quantity(values / factor, units)

    def adjoint(x, y, dy):
        """The unit of y times that of dy over that of x."""
        one = next(u for u in (x, y, dy) if u is not None)._REGISTRY.Unit("dimensionless")
        return (one if y is None else y) * (one if dy is None else dy) / (one if x is None else x)

    def first(quantity, axis):
        return quantity._REGISTRY.Quantity(np.take(quantity.magnitude, 0, axis), quantity.units), None

    def same(a, b):
        return a._REGISTRY is b._REGISTRY and a == b
    register_container(pint.Quantity, in_root, lambda q: q.units, of_root, same=same, derivative=adjoint,
                       fits=lambda a, b: a._REGISTRY is b._REGISTRY and a.dimensionality == b.dimensionality,
                       subclasses=True, along=(first, same, lambda axis_of, y, values, axis: values))


def announce() -> None:
    """Say which packages are known; their classes are registered when an object of one is met."""
    ADAPTERS.update({"pandas": _pandas, "xarray": _xarray, "pint": _pint})
