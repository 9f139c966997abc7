# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: the launches of a call are recorded once, and then replayed as one launch.

A launch costs the host microseconds, and a call has many.  A graph contains them with the arrays that they work on, so
a call copies its arguments into these, launches the graph, and copies the results out.  Temporaries are in memory that
the graph owns.

Source: CUDA C++ Programming Guide, CUDA Graphs, stream capture.
"""
import importlib
import logging

import numpy as np

from gradscribe.runtime import blas, device, device_functions

KEPT = 16                               # the most graphs of a function, one for each combination of shapes
_log = logging.getLogger("gradscribe")


class Graphed:
    """A host function whose calls with equal shapes, dtypes and numbers run as a graph, from the second call on.

    A call that must wait for the device, since a branch or a length depends on an entry, runs without a graph.

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
        """The graph of a call; None if it cannot be recorded."""
        try:
            return (Rerun if device.on_host() else Graph)(self.run, args)
        except Exception as error:          # from CUDA, CuPy or one of their libraries
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
    """The replacement for a graph without a device: it repeats the call with arrays of its own."""

    def __init__(self, run, args):
        self.cp, self.args = np, [np.array(a) if getattr(a, "ndim", 0) else a for a in args]
        self.again = run
        self.launch()

    def launch(self):
        with device_functions.later() as self.checks:
            self.results = self.again(*self.args)
