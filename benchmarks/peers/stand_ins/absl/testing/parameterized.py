"""A test method becomes one method for each set of parameters that a decorator lists."""
import collections.abc
import functools
import itertools

from absl.testing import absltest


def parameters(*cases):
    """Each case is a dictionary of keyword arguments, a sequence of arguments, or one argument."""
    if len(cases) == 1 and isinstance(cases[0], collections.abc.Iterable) and not isinstance(cases[0], (tuple, dict)):
        cases = cases[0]
    return _with([("", case) for case in cases])


def named_parameters(*cases):
    """As parameters; a name comes first, or under the key testcase_name."""
    if len(cases) == 1 and not isinstance(cases[0], (tuple, dict)):
        cases = cases[0]
    named = []
    for case in cases:
        if isinstance(case, dict):
            case = dict(case)
            named.append((str(case.pop("testcase_name")), case))
        else:
            named.append((str(case[0]), tuple(case[1:])))
    return _with(named)


def product(*groups, **grid):
    """All combinations of the dictionaries of each group and of the values of each keyword."""
    axes = [list(group) for group in groups] + [[{name: value} for value in values] for name, values in grid.items()]
    return _with([("", {k: v for part in parts for k, v in part.items()}) for parts in itertools.product(*axes)])


def _with(cases):
    def decorate(fun):
        if isinstance(fun, type):
            for name, method in list(vars(fun).items()):
                if name.startswith("test") and callable(method):
                    setattr(fun, name, decorate(method))
            _write_out(fun)
            return fun

        @functools.wraps(fun)
        def method(*args, **kwargs):
            return fun(*args, **kwargs)
        method.cases = [(name + more, (*inner, case)) for more, inner in getattr(fun, "cases", [("", ())])
                        for name, case in cases]
        return method
    return decorate


def _bound(fun, number, parts):
    @functools.wraps(fun)
    def method(self):
        args, kwargs = (), {}
        for part in parts:
            if isinstance(part, dict):
                kwargs |= part
            elif isinstance(part, collections.abc.Sequence) and not isinstance(part, str):
                args += tuple(part)
            else:
                args += (part,)
        return fun(self, *args, **kwargs)
    method.parts = parts
    del method.cases
    return method


def _write_out(cls):
    for name, fun in list(vars(cls).items()):
        if getattr(fun, "cases", None) is not None and name.startswith("test"):
            delattr(cls, name)
            for number, (more, parts) in enumerate(fun.cases):
                made = f"{name}{more}" if more else f"{name}{number}"
                if hasattr(cls, made):
                    made = f"{made}_{number}"
                setattr(cls, made, _bound(fun, number, parts))


class TestCase(absltest.TestCase):
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _write_out(cls)
