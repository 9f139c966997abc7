# SPDX-License-Identifier: Apache-2.0
"""The process of a live page that imports the user's functions: a new one for each state of their files.

It reads requests from its standard input and writes replies to its standard output, a line of JSON each.  What the
user's code prints goes to standard error.
"""
import argparse
import importlib.util
import json
import os
import queue
import sys
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradscribe import api, command, recipes
from gradscribe.live_process import Signature, signature
from gradscribe.live_view import Asked, context, is_users, name_of, offers, told, usual_arguments, view


def main() -> None:
    """Answer requests until there are no more."""
    requests: queue.SimpleQueue = queue.SimpleQueue()
    source = os.fdopen(os.dup(0), encoding="utf-8")
    threading.Thread(target=receive, args=(source, requests), daemon=True).start()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        sys.dont_write_bytecode = True          # its times have seconds only, and a file may be saved twice in one
        api.grad(lambda x: np.sum(np.tanh(x) * x)).source_for(np.ones(3))           # reads the rules, before a request
        while True:
            json.dump(answer(json.loads(requests.get())), replies)
            replies.write("\n")
            replies.flush()


def receive(source: Iterable[str], requests: queue.SimpleQueue) -> None:
    """Take requests; when they end, so does the process, even in the middle of the user's code."""
    for line in source:
        requests.put(line)
    os._exit(0)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request: whether it is ready, the first of a page, or a view."""
    if request["do"] == "ready":
        return {}
    files = signatures(origins_of(request["names"]))            # before they are read
    reply = beginning(request) if request["do"] == "begin" else shown(request)
    read = [getattr(m, "__file__", None) for m in list(sys.modules.values())]
    named = [p["file"] for p in (reply["error"] or {}).get("places", ())]
    found = signatures(file for file in [*read, *named] if file and is_users(file))
    return {**reply, "files": {**found, **files}}


def beginning(request: dict[str, Any]) -> dict[str, Any]:
    """The names of the functions, and the transformation that the options of the command line say, as text."""
    try:
        functions = [recipes.found(name) for name in request["names"]]
        options = argparse.Namespace(chain=[tuple(pair) for pair in request["chain"]])
        return {"error": None, "names": list(map(name_of, functions)),
                "recipe": recipes.recipe(command.made(functions[0], options))}
    except Exception as error:
        return {"error": told(error)}


def shown(request: dict[str, Any]) -> dict[str, Any]:
    """The view of a function, with the transformations that the page offers and the arguments that were used."""
    try:
        function = recipes.found(request["names"][request["number"]])
        function = getattr(function, "fun", function)
        asked = Asked(request["recipe"], request["arguments"].strip() or usual_arguments(function),
                      bool(request["timed"]), request["trusted"])
        return {**view(function, asked), "offers": offers(function), "arguments": asked.arguments}
    except Exception as error:
        found = told(error)
        blocks = [{"file": p["file"], "name": os.path.basename(p["file"]), "start": lines[0][0],
                   "lines": [text for _, text in lines]}
                  for p in found["places"][:1] if (lines := list(context(p["file"], p["line"])))]
        return {"left": {"name": request["names"][request["number"]], "blocks": blocks}, "right": None, "links": [],
                "times": None, "error": found, "given": "", "offers": [], "arguments": request["arguments"]}


# --- files ------------------------------------------------------------------------------------------------------------

def origins_of(names: Iterable[str]) -> list[str]:
    """The files of modules, found without running them where they are not in packages."""
    found = []
    for name in names:
        try:
            spec = importlib.util.find_spec(name.partition(":")[0])
        except Exception:               # a package around it cannot be imported; the request says so
            continue
        if spec is not None and spec.origin is not None and is_users(spec.origin):
            found.append(spec.origin)
    return found


def signatures(files: Iterable[str]) -> dict[str, Signature]:
    """{file: what tells its states apart} of those that are there."""
    found = {}
    for file in dict.fromkeys(map(os.path.abspath, files)):
        state = signature(file)
        if state is not None:
            found[file] = state
    return found


if __name__ == "__main__":
    main()
