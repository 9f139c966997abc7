# SPDX-License-Identifier: Apache-2.0
"""The launches of a call, recorded once and given to the device as one thing from then on: CUDA graphs.

A launch costs the host microseconds, and a call has many.  A graph has them with the arrays that they work on, so a
call copies its arguments into those, launches the graph, and copies the results out.  Memory of the graph's own holds
what lies between.

Source: CUDA C++ Programming Guide, CUDA Graphs, stream capture.
"""
import importlib
import logging

import numpy as np

from gradscribe.runtime import blas, device, device_functions

KEPT = 16                               # graphs of a function: of so many shapes
_log = logging.getLogger("gradscribe")


class Graphed:
    """A function of the host whose calls of equal shapes, dtypes and numbers become one graph, from the second on.

    What waits for the device, because a branch or a length hangs on an entry, has no graph: it runs as it stands.

    >>> f = Graphed(lambda x: (x * 2,))
    >>> [f(np.ones(2) * k)[0].tolist() for k in range(3)], len(f.graphs)
    ([[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]], 1)
    """

    def __init__(self, run):
        self.run, self.seen, self.graphs = run, set(), {}

    def __call__(self, *args):
        key = tuple((a.shape, a.dtype.str) if getattr(a, "ndim", 0) else (type(a), a.item()) for a in args)
        graph = self.graphs.get(key)
        if graph is None and key in self.seen and len(self.graphs) < KEPT and key not in self.graphs:
            graph = self.graphs[key] = self.recorded(args)
        if graph is None:
            self.seen.add(key)              # kernels are compiled in the first call
            return self.run(*args)
        return graph(*args)

    def recorded(self, args):
        """The graph of a call, None where there is none."""
        try:
            return (Rerun if device.on_host() else Graph)(self.run, args)
        except Exception as error:          # of CUDA, CuPy, or a library of theirs
            _log.warning("a function is launched without a graph: %s: %s", type(error).__name__, error)
            return None


class Graph:
    """A call that CuPy recorded."""

    def __init__(self, run, args):
        cp = importlib.import_module("cupy")
        self.cp, self.pool = cp, cp.cuda.MemoryPool()
        stream = cp.cuda.Stream(non_blocking=True)
        with cp.cuda.using_allocator(self.pool.malloc), device_functions.later() as self.checks:
            self.args = [cp.array(a) if getattr(a, "ndim", 0) else a for a in args]
            cp.cuda.get_current_stream().synchronize()
            with stream:
                stream.begin_capture()
                try:
                    self.results = run(*self.args)
                finally:
                    self.graph = stream.end_capture()
                    self.memory = blas.taken(stream.ptr)

    def __call__(self, *args):
        for own, given in zip(self.args, args):
            if getattr(own, "ndim", 0):
                self.cp.copyto(own, given)
        self.launch()
        for wrong in self.checks:
            device_functions.check_places(wrong)
        return tuple(r.copy() if isinstance(r, self.cp.ndarray) else r for r in self.results)

    def launch(self):
        self.graph.launch()


class Rerun(Graph):
    """What a graph is where there is no device: the call again, with arrays of its own."""

    def __init__(self, run, args):
        self.cp, self.args = np, [np.array(a) if getattr(a, "ndim", 0) else a for a in args]
        self.again = run
        self.launch()

    def launch(self):
        with device_functions.later() as self.checks:
            self.results = self.again(*self.args)
