# SPDX-License-Identifier: Apache-2.0
"""`gs.grad` of a user's own CUDA kernel, one that `@cuda.jit` made: a kernel that computes its adjoints."""
import functools
import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError
from gradscribe.codegen import cache
from gradscribe.codegen.kernels.given import in_given_arrays, of_kernel
from gradscribe.codegen.kernels.thread import SAME_FOR_ALL, thread_of
from gradscribe.codegen.targets.cuda.adjoint import adjoint_of
from gradscribe.colours import Source
from gradscribe.frames import public
from gradscribe.runtime import device
from gradscribe.runtime.backends import TWINS, backend_of, function_of
from gradscribe.transformed import Transformed


def form_of(pullback: Transformed, args: Sequence) -> tuple:
    """The finished normal form of a thread's pullback for such arguments, and the arrays that it reads from outside."""
    names = pullback.parameter_names(len(args))     # a kernel is made of it, so its results may alias its arguments
    made, pipeline = pullback.normal_form(names, *pullback._described(args, {}, names), nested=False, given_away=False)
    return pipeline.nested(in_given_arrays(made, pullback.transform.settings)), pipeline.reader.environment.captured


class Adjoint:
    """The adjoint of a kernel.  It is launched like the kernel, with its arguments and then an adjoint for each of
    argnums.

    Attributes: `source`, the text of the last launch's kernel; `__wrapped__`, the user's kernel.
    """

    made: dict[Any, Any]

    def __init__(self, kernel, argnums: int | Sequence[int] | None = None):
        self.backend = backend_of(kernel)
        function = function_of(kernel)
        self.function, self.made, self.last, self.place = function, {}, None, place_of(function)
        functools.update_wrapper(self, kernel, updated=())
        self.__wrapped__, self.__name__ = kernel, f"{function.__name__}_adjoint"
        self.names = thread_of(function).names
        count = len(self.names)
        numbers = [argnums] if isinstance(argnums, int) else argnums
        for k in numbers or ():
            if not -count <= k < count:
                raise KindError(f"argnums {k} is out of range: {function.__name__} has {count} parameters",
                                place_of(function))
        self.argnums = None if numbers is None else [k % count for k in numbers]

    @property
    @public
    def source(self) -> str:
        """The kernel's text; LanguageError before the first launch."""
        if self.last is None:
            raise LanguageError(f"{self.__name__} was not launched yet: its text depends on the arguments' dtypes",
                                self.place, "Launch it, as adjoint[blocks, threads](...).")
        return Source(self.last.text)

    def __repr__(self):
        return f"<{self.__name__}>"

    @public
    def __call__(self, *args):
        """Raise KindError: a kernel is launched with `kernel[blocks, threads](...)`."""
        raise KindError(f"{self.__name__} is a kernel: it needs the numbers of blocks and threads",
                        self.place, f"{self.__name__}[blocks, threads](...)")

    @public
    def __getitem__(self, config) -> Callable:
        """A function that launches the kernel; config: as for the user's kernel."""
        if not isinstance(config, tuple) or len(config) < 2:
            raise KindError(f"{self.__name__}[...] needs the number of blocks and the threads of a block",
                            self.place)
        return functools.partial(self.launch, config)

    @public
    def launch(self, config, *args):
        """Launch the kernel.  KindError for arguments that do not fit, LanguageError if a written array is aliased."""
        count = len(self.names)
        for name, a in zip(self.names, args):
            if not isinstance(a, (bool, int, float, np.generic)) and not getattr(a, "ndim", 0):
                raise KindError(f"{name} is {spell(a)}, which is not accepted by adjoints of kernels",
                                place_of(self.function, name), "Give it numbers, and arrays with axes.")
        kinds = {n: (np.dtype(getattr(a, "dtype", type(a))), getattr(a, "ndim", 0))
                 for n, a in zip(self.names, args)}
        if len(args) < count:
            raise KindError(f"{self.__name__} takes {count} arguments of {self.function.__name__}'s, and adjoints",
                            self.place)
        key = tuple(kinds.values())
        if key not in self.made:
            self.made[key] = self.version(kinds, args[:count])
        thread, wrt, adjoint, space, empty = self.made[key]
        self.last = adjoint
        self.check(args, count, wrt, thread)
        blocks, threads, *more = config
        sizes = [(*(n if isinstance(n, tuple) else (n,)), 1, 1)[:3] for n in (blocks, threads)]
        if adjoint.plain or any(thread.written.values()):
            self.check_sizes(thread, *sizes)
        buffers = []
        if adjoint.buffers:
            total = int(np.prod([a * b for a, b in zip(*sizes)]))
            given = dict(zip(self.names, args))
            if adjoint.counting:
                counts = [empty((1, total), np.int64) for _ in adjoint.sizes]
                space[adjoint.counting][blocks, threads, *more](*args[:count], *counts)
                given |= {n: int(of_host(c).max(initial=0)) for n, c in zip(adjoint.sizes, counts)}
            for shape, dtype in adjoint.buffers.values():
                lengths = [eval(n, {}, given) for n in shape]
                buffers.append(empty((*lengths, total), dtype))
        space[adjoint.label][blocks, threads, *more](*args, *buffers)

    def version(self, kinds, args):
        """The kernel for arguments of these kinds, and what a launch needs."""
        for name, (dtype, _) in kinds.items():
            if dtype.kind not in "fiub":
                raise KindError(f"{name} is of {dtype}, and kernels of real numbers alone have an adjoint",
                                place_of(self.function, name))
            if dtype.kind == "f" and dtype.itemsize not in (4, 8):
                raise KindError(f"{name} is of {dtype}, and adjoints of kernels are in single or double precision",
                                place_of(self.function, name), "Convert it before the launch.")
        floating = [n for n in self.names if kinds[n][0].kind == "f"]
        thread = thread_of(self.function, {n: k[1] for n, k in kinds.items()}, floating)
        if not any(n in floating for n in thread.written):
            raise KindError(f"{self.function.__name__} writes no array of floating-point numbers",
                            self.place)
        length = itertools.count(1009)  # no two lengths are equal, whatever those of the arguments
        given = [np.broadcast_to(np.zeros((), dtype), tuple(itertools.islice(length, rank)))[()]
                 for dtype, rank in kinds.values()]
        outs = [n for n in thread.written if n in floating]
        wanted = [n for k, n in enumerate(self.names) if n in floating and (
            self.argnums is None or k in self.argnums or n in thread.written)]
        numbers = {n: len(thread.places) + self.names.index(n) for n in wanted}
        pullback = Transformed(thread.function, of_kernel(outs, thread.written, numbers))
        args = [tuple(given[self.names.index(n)] for n in outs), *[np.int64(0)] * len(thread.places), *given]
        adjoint = adjoint_of(functools.partial(form_of, pullback, args), thread, kinds, wanted, self.__name__,
                             self.place)
        return thread, wanted, adjoint, *bound(adjoint.text, self.backend)

    def check(self, args, count, wrt, thread):
        """Raise an error for adjoints that do not fit their primals, and for written arrays that are aliased."""
        adjoints = args[count:]
        if len(adjoints) != len(wrt):
            raise KindError(f"{self.__name__} takes {len(wrt)} adjoints after {self.function.__name__}'s arguments: "
                            f"of {', '.join(wrt)}; {len(adjoints)} are given", self.place)
        given = dict(zip(self.names, args))
        for name, d in zip(wrt, adjoints):
            primal, shape = given[name], getattr(given[name], "shape", ())
            if getattr(d, "shape", None) != (shape or (1,)):
                raise KindError(f"the adjoint of {name} is an array of shape {shape or (1,)}",
                                place_of(self.function, name),
                                "" if shape else "The adjoint of a number is added to an array of one entry.")
            dtype = np.dtype(getattr(primal, "dtype", type(primal)))
            if d.dtype != dtype:
                raise KindError(f"{name} is of {dtype}, and its adjoint of {d.dtype}", place_of(self.function, name))
        arrays = [(n, a) for n, a in [*given.items(), *((f"the adjoint of {n}", d) for n, d in zip(wrt, adjoints))]
                  if hasattr(a, "shape") and getattr(a, "ndim", 0)]
        changed = {*thread.written, *(f"the adjoint of {n}" for n in wrt)}
        for k, (n, a) in enumerate(arrays):
            for m, b in arrays[k + 1:]:
                if (n in changed or m in changed) and overlap(a, b):
                    raise LanguageError(f"{n} and {m} share memory, and one of them is written",
                                        self.place, "Pass a copy.")

    def check_sizes(self, thread, blocks, threads):
        """Raise LanguageError if the launch has more threads or blocks along an axis than the kernel distinguishes."""
        for k, axis in enumerate("xyz"):
            used = thread.axes.get(axis, set()) - set(SAME_FOR_ALL)
            wrong = {frozenset(): blocks[k] * threads[k] > 1, frozenset(["thread"]): blocks[k] > 1,
                     frozenset(["block"]): threads[k] > 1}.get(frozenset(used), False)
            if wrong or self.backend in TWINS and used & {"thread", "block"} and {"width", "count"}.isdisjoint(
                    thread.axes.get(axis, ())) and blocks[k] * threads[k] > 1:
                raise LanguageError(
                    f"{self.function.__name__} does not distinguish threads along {axis} of the grid: "
                    f"{blocks[k]} blocks of {threads[k]}", self.place,
                    "Launch one there, or let the kernel ask where a thread is.")


def spell(value):
    """A description of a value's kind, for error messages."""
    return "an array without axes" if hasattr(value, "dtype") else f"a {type(value).__name__}"


def of_host(array):
    """A back end's array as a NumPy array."""
    return array.get() if hasattr(array, "get") else array.copy_to_host() if hasattr(
        array, "copy_to_host") else np.asarray(array)


def bound(text, backend):
    """(kernels of a module by name, function that allocates arrays) for a back end."""
    name = f"<gradscribe.kernel.{hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    cache.show(name, text)
    space = {"__name__": name}
    with device.using(backend):
        exec(compile(text, name, "exec"), space)
        device.ready(space)
        return space, getattr(device.cuda, "device_array", np.empty)


def overlap(a, b):
    """Whether two arrays may share memory."""
    spans = []
    for x in (a, b):
        face = getattr(x, "__cuda_array_interface__", None) or getattr(x, "__array_interface__", None)
        if face is None or 0 in face["shape"]:
            return False
        steps = face.get("strides") or np.empty(face["shape"], np.dtype(face["typestr"])).strides
        reach = sum(abs(s) * (n - 1) for s, n in zip(steps, face["shape"])) + np.dtype(face["typestr"]).itemsize
        spans.append((face["data"][0], face["data"][0] + reach))
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]
