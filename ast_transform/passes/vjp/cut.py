# SPDX-License-Identifier: Apache-2.0
"""The cheapest set of values to save: a minimum vertex cut.

>>> minimum_cut(["x", "s", "p"], {"x": None, "s": ["x"], "p": ["s"]}, ["s", "p"], {"x": 5, "s": 3, "p": 3}.get)
(['s'], 3)

Computing a value again may have a price.

>>> minimum_cut(["x", "s"], {"x": None, "s": ["x"]}, ["x", "s"], {"x": 5, "s": 3}.get, {"s": 2})
(['x'], 7)
>>> minimum_cut(["x", "s"], {"x": None, "s": ["x"]}, ["x", "s"], {"x": 5, "s": 3}.get, {"s": 4})
(['x', 's'], 8)
"""
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any


def minimum_cut(nodes: Iterable[Hashable], sources: Mapping[Any, Any],
                needed: Iterable[Hashable], cost: Callable[[Any], int],
                prices: Mapping[Any, int] | Any = ()) -> tuple[list, int]:
    """(vertices of least total cost that separate what cannot be computed again from what is needed, that cost).

    sources: what each node is computed from, None if it cannot be; prices: the costs of computing some of them again

    Ford and Fulkerson's augmenting paths on the graph with every vertex split in two; of the minimum cuts, the one
    nearest to the sources.
    """
    infinite, total = 10**9, 0
    graph: dict[Any, dict[Any, int]] = {}
    before: dict[Any, Any]
    def edge(a, b, c):
        graph.setdefault(a, {})[b] = graph.get(a, {}).get(b, 0) + c
        graph.setdefault(b, {}).setdefault(a, 0)
    for v in nodes:
        edge((v, 0), (v, 1), cost(v))
        if sources[v] is None:
            edge("source", (v, 0), infinite)
        else:
            for o in sources[v]:
                edge((o, 1), (v, 0), infinite)
            if v in prices:
                edge("source", (v, 0), prices[v])
    for v in needed:
        edge((v, 1), "sink", infinite)
    if "source" not in graph or "sink" not in graph:
        return [], 0
    while True:
        before, queue = {"source": None}, ["source"]
        for a in queue:
            for b, c in graph[a].items():
                if c > 0 and b not in before:
                    before[b] = a
                    queue.append(b)
        if "sink" not in before:
            break
        path, b = [], "sink"
        while before[b] is not None:
            path.append((before[b], b))
            b = before[b]
        flow = min(graph[a][b] for a, b in path)
        for a, b in path:
            graph[a][b] -= flow
            graph[b][a] += flow
        total += flow
    return [v for v in nodes if (v, 0) in before and (v, 1) not in before], total
