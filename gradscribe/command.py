# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m gradscribe show | live | dump | check | doctor | bench`.

A function is named package.module:function.  Transformations apply in the order in which they are given:
`--grad w --vmap None,0` means vmap(grad(f)).
"""
import argparse
import inspect
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from gradscribe import api, files, recipes
from gradscribe.ast_transform.mapping import Vmap
from gradscribe.ast_transform.source.diagnose import KindError, TransformError
from gradscribe.doctor import report
from gradscribe.jit import jit
from gradscribe.kinds import example
from gradscribe.live import Wanted, live
from gradscribe.transformed import Transformed, Version, is_transformed

EXAMPLES = """examples:
  python -m gradscribe show colorsys:rgb_to_yiq --vjp --args "(float, float, float), float, float, float"
  python -m gradscribe dump package.module:loss --grad w,b --args "float64[n, 3], float, float64[n]" -o generated/
  python -m gradscribe check generated/
  python -m gradscribe live package.module:loss --grad w --args "float64[n, 3], float, float64[n]"
"""


class Chain(argparse.Action):
    """Collects the transformations in the order of the options."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Append an option's transformation to those before it."""
        chain = [*(getattr(namespace, "chain", None) or []), (option_string.lstrip("-").replace("-", "_"), values)]
        namespace.chain = chain


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    top = argparse.ArgumentParser("gradscribe", description=__doc__.splitlines()[0], epilog=EXAMPLES,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True)
    for name, told in (("show", "print a function and its transformation side by side"),
                       ("dump", "write the transformation of a function to a file that runs without Gradscribe"),
                       ("bench", "time a function and its transformation, in NumPy and compiled"),
                       ("live", "serve a page with a function and its transformation to a browser on this machine; it "
                        "changes when a file is saved")):
        command = commands.add_parser(name, help=told, description=told)
        command.add_argument("function", help="package.module:function", nargs="+" if name == "live" else None)
        for option in ("grad", "value-and-grad", "jacfwd", "jacrev", "hessian"):
            command.add_argument(f"--{option}", action=Chain, nargs="?", metavar="NAMES",
                                 help="in these arguments, separated by commas (default: the first)")
        command.add_argument("--vmap", action=Chain, nargs="?", metavar="AXES", help="in_axes, as 0,None (default: 0)")
        for option in ("jvp", "vjp"):
            command.add_argument(f"--{option}", action=Chain, nargs=0, help=f"gs.{option}_of")
        command.add_argument("--args", metavar="KINDS", help='as "float64[n, 3], float64[3], float"; without them, '
                             "those of annotations or the simplest that fit")
        if name == "dump":
            command.add_argument("-o", "--out", default="generated", help="file or folder (default: generated)")
        if name == "live":
            command.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
            command.add_argument("--no-browser", action="store_true", help="print the address and open no browser")
            command.add_argument("--until-closed", action="store_true",
                                 help="end when standard input ends: for editors that start it")
        if name == "show":
            command.add_argument("--plain", action="store_true", help="no colours and no columns")
    told = "compare written files with their functions and run them in a fresh interpreter"
    command = commands.add_parser("check", help=f"{told}; exit 1 where one differs", description=f"{told}.  Exit "
                                  "status: 0 if all are the same, 1 if one differs, 2 if one could not be checked or "
                                  "there is none.")
    command.add_argument("paths", nargs="+", help="files or folders")
    command.add_argument("--allow-unchecked", action="store_true",
                         help="exit 0 where nothing differs but not everything, or nothing, could be checked")
    commands.add_parser("doctor", help="versions, threads, BLAS, CUDA, MPI, cache, and what is missing")
    return top


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code: 1 if files differ, 2 if one is unchecked or the command was wrong."""
    options = parser().parse_args(argv)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return {"show": show, "live": serve, "dump": dump, "bench": bench, "check": check, "doctor": doctor}[
            options.command](options)
    except TransformError as error:
        print(f"gradscribe: {error}", file=sys.stderr)
        return 2


# --- what is made -----------------------------------------------------------------------------------------------------

def transformed(options):
    """(the user's function, the transformed one)"""
    function = recipes.found(options.function)
    return function, made(function, options)


def made(function: Callable, options: argparse.Namespace) -> Any:
    """The function with the transformations of the options applied."""
    fn = getattr(function, "fun", function)
    for name, value in getattr(options, "chain", None) or [("grad", None)]:
        if name in ("jvp", "vjp"):
            fn = getattr(api, f"{name}_of")(fn)
        elif name == "vmap":
            fn = api.vmap(fn, 0 if value is None else axes(value))
        else:
            fn = getattr(api, name)(fn, **({} if value is None else {"argnums": numbers(function, value)}))
    return fn


def numbers(function, names):
    """The positions of arguments, from their names as "x,y"."""
    known = list(inspect.signature(function).parameters)
    places = []
    for name in names.split(","):
        if name.strip() not in known:
            raise KindError(f"{function.__name__} has no argument {name.strip()}", None, f"It has {', '.join(known)}.")
        places.append(known.index(name.strip()))
    return places[0] if len(places) == 1 else tuple(places)


def axes(text):
    """The in_axes that a text as "0,None" gives."""
    try:
        found = tuple(None if part.strip() == "None" else int(part) for part in text.split(","))
    except ValueError:
        raise KindError(f"{text!r} does not name axes", None, "Write them so: 0,None.") from None
    return found[0] if len(found) == 1 and found[0] is not None else found


def version(fn: Transformed, options: argparse.Namespace) -> Version:
    """The specialisation for the kinds of --args, or for those of annotations, or for the simplest."""
    args, words = example(fn.simplest_kinds() if options.args is None else options.args)
    return fn.version_for(args, words)


def show(options):
    """Print a function and its transformation; in a terminal with Rich, side by side."""
    function, fn = transformed(options)
    primal, text = inspect.getsource(getattr(function, "fun", function)), version(fn, options).text
    if sys.stdout.isatty() and not options.plain:
        try:
            side_by_side(primal, text, fn.__name__)
            return 0
        except ImportError:
            pass
    print(f"{primal}\n\n{text}", end="")
    return 0


def side_by_side(primal, text, title):
    """Print two texts in two columns, in colours."""
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.table import Table
    table = Table(show_edge=False, expand=False)
    for head, part in (("function", primal), (title, text)):
        table.add_column(head, max_width=max(map(len, part.splitlines()), default=0) + 2)
    table.add_row(*(Syntax(part.rstrip(), "python", theme="ansi_dark", background_color="default")
                    for part in (primal, text)))
    Console(width=max(shutil.get_terminal_size().columns, 80)).print(table)


def serve(options):
    """Serve the live page; --args are the arguments of the function itself, without tangents and batch axes."""
    live(Wanted(options.function, getattr(options, "chain", None) or [("grad", None)], options.args or ""),
         options.port, not options.no_browser, options.until_closed)
    return 0


def dump(options):
    """Write the transformation of a function to a file, and print the path."""
    _, fn = transformed(options)
    args, words = example(fn.simplest_kinds() if options.args is None else options.args)
    args, words = fn.given(args, words)
    print(files.written(fn, fn.version_for(args, words), options.out, args, words, files.EXAMPLE))
    return 0


def progress(paths):
    """The files, with a progress bar in a terminal if tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return paths
    return tqdm(paths, unit="file", leave=False, disable=None)


def check(options):
    """Check files that `gradscribe dump` wrote; the result is the exit status."""
    found = files.checked(progress([file for path in options.paths for file in files.files_in(path)]))
    for c in found:
        print(f"{c.path}: {c.state}" + (f": {c.detail}" if c.state == "unchecked" else ""))
        if c.state == "differs":
            print(c.detail)
    worse, unknown = (sum(c.state == state for c in found) for state in ("differs", "unchecked"))
    if not found:
        print("nothing to check: no file that gradscribe dump wrote")
    else:
        print(f"{len(found)} file{'s' * (len(found) != 1)}, {worse} no longer match{'es' * (worse == 1)}"
              f"{f', {unknown} unchecked' if unknown else ''}")
    if worse:
        return 1
    return 2 if (unknown or not found) and not options.allow_unchecked else 0


# --- times and versions -----------------------------------------------------------------------------------------------

def bench(options):
    """Print the median times of interleaved runs, and the time of each first call."""
    _, fn = transformed(options)
    if options.args is None:
        raise KindError("bench needs --args", None, 'As --args "float64[1000, 3], float64[3]".')
    args, words = example(options.args)
    plain, own = undifferentiated(fn, args)
    calls = {"function, NumPy": (plain, own), f"{fn.__name__}, NumPy": (fn, args),
             "function, compiled": (jit(plain), own), f"{fn.__name__}, compiled": (jit(fn), args)}
    firsts = {}
    for name, (call, given) in calls.items():
        start = time.perf_counter()
        call(*given, **words)
        firsts[name] = time.perf_counter() - start
    times = {name: [] for name in calls}
    for _ in range(15):
        for name, (call, given) in calls.items():
            start = time.perf_counter()
            call(*given, **words)
            times[name].append(time.perf_counter() - start)
    print(f"{'':32} {'first call':>12} {'then':>12}")
    for name, found in times.items():
        print(f"{name:32} {firsts[name] * 1e3:10.2f}ms {statistics.median(found) * 1e3:10.4f}ms")
    return 0


def undifferentiated(fn, args):
    """The function without its derivatives but with its vmaps, and its arguments."""
    batches = []
    while is_transformed(fn):
        if isinstance(fn.transform.settings, Vmap):
            batches.append(fn.transform.settings)
        else:
            args = fn.transform.split(None, list(args))[0]
        fn = fn.base
    for t in reversed(batches):
        fn = api.vmap(fn, t.in_axes, t.out_axes)
    return fn, tuple(args)


def doctor(_):
    """Print the report on this installation."""
    print(report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
