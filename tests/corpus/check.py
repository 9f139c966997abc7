#!/usr/bin/env python
"""Check a gradient tool against the corpus.

    python check.py TOOL [options]

TOOL is a path to a .py file (or an importable module name) exposing

    grad(f, argnums) -> g     where g(*args) is the gradient; argnums is an int
                              or a tuple of ints (then g returns a tuple)

Optional attributes of TOOL:

    NUMPY = 'autograd.numpy'  module to bind to the corpus' global ``np``
    SKIP  = {'case': 'why'}   cases reported as skipped
    GLOBALS = {'name': obj}   extra names to put in the corpus' globals

Reference: complex step where it agrees with a 5-point central difference,
otherwise the Richardson-extrapolated difference; float64 throughout; or the
closed form given by the case.  The reference always runs on plain NumPy, on a
separately loaded copy of the corpus.

Options: -v, --only NAME[,NAME], --category CAT[,CAT], --timeout SECONDS,
         --json FILE, --list, --check-reference
Last line:  'N passed, M failed'
Exit status is 0 when nothing failed.
"""

import argparse
import collections
import contextlib
import copy
import importlib
import importlib.util
import io
import json
import os
import signal
import sys
import time
import warnings

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))


class Timeout(Exception):
    pass


def load_file(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    mod = importlib.util.module_from_spec(spec)
    sys.modules[name] = mod
    spec.loader.exec_module(mod)
    return mod


def load_corpus(tag):
    mods = [load_file(os.path.join(HERE, 'functions.py'), 'functions' + tag)]
    return mods, list(mods[0].CASES)


# -- pytrees of floats -------------------------------------------------------

def is_leaf(x):
    return not isinstance(x, (list, tuple, dict))


def flatten(x):
    """Flatten a (nested) container of numbers/arrays to a float vector."""
    if isinstance(x, dict):
        parts = [flatten(x[k]) for k in sorted(x)]
    elif isinstance(x, (list, tuple)):
        parts = [flatten(v) for v in x]
    else:
        if x is None:
            raise ValueError('gradient is None')
        a = numpy.asarray(x)
        if a.dtype == object:
            raise ValueError('gradient has dtype object: %r' % (x,))
        return a.ravel()
    return numpy.concatenate(parts) if parts else numpy.zeros(0)


def shapes(x):
    if isinstance(x, dict):
        return {k: shapes(x[k]) for k in sorted(x)}
    if isinstance(x, (list, tuple)):
        return [shapes(v) for v in x]
    return tuple(numpy.shape(x))


def rebuild(like, vec, pos=0):
    """Inverse of flatten; returns (tree, next position)."""
    if isinstance(like, dict):
        out = {}
        for k in sorted(like):
            out[k], pos = rebuild(like[k], vec, pos)
        return {k: out[k] for k in like}, pos
    if isinstance(like, (list, tuple)):
        out = []
        for v in like:
            r, pos = rebuild(v, vec, pos)
            out.append(r)
        return type(like)(out), pos
    if numpy.ndim(like) == 0:
        v = vec[pos]
        if not isinstance(like, numpy.ndarray):
            v = complex(v) if numpy.iscomplexobj(vec) else float(v)
        return v, pos + 1
    n = int(numpy.size(like))
    return numpy.array(vec[pos:pos + n]).reshape(numpy.shape(like)), pos + n


# -- reference ---------------------------------------------------------------

def reference(case):
    """Reference gradient of a first-order case -> (vector, tolerance, how)."""
    argnums = case.argnums if isinstance(case.argnums, tuple) else (case.argnums,)
    if case.expect is not None:
        want = case.expect(*copy.deepcopy(case.args))
        return flatten(want).astype(float), 1e-8, 'closed form'
    like = [case.args[i] for i in argnums]
    x0 = flatten(like).astype(float)

    def f(vec):
        args = list(copy.deepcopy(case.args))
        tree, _ = rebuild(like, vec)
        for i, v in zip(argnums, tree):
            args[i] = v
        return case.func(*args)

    def five_point(h):
        g = numpy.zeros(x0.size)
        for k in range(x0.size):
            e = numpy.zeros(x0.size)
            e[k] = h * max(1.0, abs(x0[k]))
            g[k] = (f(x0 - 2 * e) - 8 * f(x0 - e) + 8 * f(x0 + e) - f(x0 + 2 * e)) / (12 * e[k])
        return g

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        # Steps chosen between truncation and rounding; pick the pair that agrees best.
        steps = [3e-3, 1e-3, 3e-4, 1e-4, 3e-5]
        est = [five_point(h) for h in steps]
        errs = [numpy.max(numpy.abs(a - b)) if x0.size else 0.0 for a, b in zip(est, est[1:])]
        errs = [numpy.inf if not numpy.isfinite(e) else e for e in errs]
        best = int(numpy.argmin(errs))
        fd, fd_err = est[best + 1], errs[best]
    scale = 1.0 + (numpy.max(numpy.abs(fd)) if x0.size else 0.0)
    tol = max(1e-7 * scale, 20 * fd_err)
    # complex step, if the function is complex-safe and analytic
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            cs = numpy.zeros(x0.size)
            for k in range(x0.size):
                z = x0.astype(complex)
                z[k] += 1e-30j
                cs[k] = numpy.imag(f(z)) / 1e-30
        if numpy.all(numpy.isfinite(cs)) and numpy.max(numpy.abs(cs - fd)) <= tol:
            return cs, 1e-9 * scale, 'complex step'
    except Exception:
        pass
    return fd, tol, 'finite difference (err %.0e)' % fd_err


# -- running one case --------------------------------------------------------

@contextlib.contextmanager
def alarm(seconds):
    def handler(signum, frame):
        raise Timeout('timed out after %ss' % seconds)
    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def run_tool(tool, case):
    if case.order == 1:
        g = tool.grad(case.func, case.argnums)
    else:
        g = case.func
        for _ in range(case.order):
            g = tool.grad(g, case.argnums)
    return g(*copy.deepcopy(case.args))


def check(tool, case, ref_case, timeout):
    """-> (status, detail, seconds); status in pass/wrong/error/timeout/badref."""
    t0 = time.time()
    try:
        want, tol, how = reference(ref_case)
        if not numpy.all(numpy.isfinite(want)):
            return 'badref', 'reference not finite', 0.0
    except Exception as e:
        return 'badref', 'reference failed: %r' % e, 0.0
    try:
        sink = io.StringIO()
        with alarm(timeout), contextlib.redirect_stdout(sink), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            got_tree = run_tool(tool, case)
        dt = time.time() - t0
        got = flatten(got_tree)
        if numpy.iscomplexobj(got):
            if numpy.max(numpy.abs(numpy.imag(got))) > 1e-9:
                return 'wrong', 'complex gradient for real input', dt
            got = numpy.real(got)
        got = got.astype(float)
        argnums = case.argnums if isinstance(case.argnums, tuple) else (case.argnums,)
        like = [case.args[i] for i in argnums]
        if not isinstance(case.argnums, tuple):
            like = like[0]
        if got.shape != want.shape:
            return 'wrong', 'gradient has %d entries, expected %d (shape %s, expected %s)' % (
                got.size, want.size, shapes(got_tree), shapes(like)), dt
        if not numpy.all(numpy.isfinite(got)):
            return 'wrong', 'non-finite gradient %s, expected %s' % (brief(got), brief(want)), dt
        err = numpy.max(numpy.abs(got - want)) if want.size else 0.0
        if err > tol:
            return 'wrong', 'max error %.2e (tol %.0e, %s): got %s, expected %s' % (
                err, tol, how, brief(got), brief(want)), dt
        if shapes(got_tree) != shapes(like):
            return 'wrong', 'right numbers, wrong structure: shape %s, expected %s' % (
                shapes(got_tree), shapes(like)), dt
        return 'pass', how, dt
    except Timeout as e:
        return 'timeout', str(e), time.time() - t0
    except (KeyboardInterrupt, SystemExit) as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return 'error', repr(e), time.time() - t0
    except BaseException as e:
        msg = str(e).strip().splitlines()
        return 'error', '%s: %s' % (type(e).__name__, msg[0][:160] if msg else ''), time.time() - t0


def brief(v):
    with numpy.printoptions(precision=4, threshold=6, edgeitems=2):
        return str(numpy.asarray(v))


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('tool', nargs='?')
    ap.add_argument('-v', '--verbose', action='store_true')
    ap.add_argument('--only', default='')
    ap.add_argument('--category', default='')
    ap.add_argument('--timeout', type=float, default=60.0)
    ap.add_argument('--json', default='')
    ap.add_argument('--list', action='store_true')
    ap.add_argument('--check-reference', action='store_true',
                    help='only verify that every case has a trustworthy reference')
    opt = ap.parse_args(argv)

    ref_mods, ref_cases = load_corpus('_ref')
    only = set(filter(None, opt.only.split(',')))
    cats = set(filter(None, opt.category.split(',')))
    chosen = [i for i, c in enumerate(ref_cases)
              if (not only or c.name in only) and (not cats or c.category in cats)]

    if opt.list:
        for i in chosen:
            print('%-16s %s' % (ref_cases[i].category, ref_cases[i].name))
        print('%d cases' % len(chosen))
        return 0
    if opt.check_reference:
        bad, hows = 0, collections.Counter()
        for i in chosen:
            try:
                g, tol, how = reference(ref_cases[i])
                hows[how.split(' (')[0]] += 1
                if not numpy.all(numpy.isfinite(g)) or tol > 1e-4 * (1 + numpy.max(numpy.abs(g))):
                    bad += 1
                    print('POOR', ref_cases[i].name, 'tol %.1e' % tol, how, brief(g))
            except Exception as e:
                bad += 1
                print('BAD ', ref_cases[i].name, repr(e))
        print(dict(hows), '%d poor references' % bad)
        return 1 if bad else 0
    if not opt.tool:
        ap.error('TOOL is required')

    if opt.tool.endswith('.py') or os.path.sep in opt.tool:
        sys.path.insert(0, os.path.dirname(os.path.abspath(opt.tool)))
        tool = load_file(os.path.abspath(opt.tool), 'corpus_tool')
    else:
        tool = importlib.import_module(opt.tool)

    mods, cases = load_corpus('')
    space = getattr(tool, 'NUMPY', 'numpy')
    for m in mods:
        if space != 'numpy':
            m.np = importlib.import_module(space)
        m.grad = tool.grad
        for key, val in getattr(tool, 'GLOBALS', {}).items():
            setattr(m, key, val)
    skip = getattr(tool, 'SKIP', {})

    rows, per = [], collections.OrderedDict()
    for i in chosen:
        c = cases[i]
        if c.name in skip:
            status, detail, dt = 'skip', skip[c.name], 0.0
        else:
            status, detail, dt = check(tool, c, ref_cases[i], opt.timeout)
        rows.append(dict(category=c.category, name=c.name, status=status, detail=detail, seconds=round(dt, 3)))
        p = per.setdefault(c.category, [0, 0])
        p[0 if status == 'pass' else 1] += 1
        if opt.verbose or status not in ('pass',):
            print('%-7s %-15s %-32s %s' % (status.upper(), c.category, c.name, '' if status == 'pass' else detail))
        sys.stdout.flush()

    print()
    print('%-16s %7s' % ('category', 'passed'))
    for cat, (ok, no) in per.items():
        names = [r['name'] for r in rows if r['category'] == cat and r['status'] != 'pass']
        print('%-16s %3d/%-3d %s' % (cat, ok, ok + no, ' '.join(names)))
    kinds = collections.Counter(r['status'] for r in rows)
    print('by outcome: ' + ', '.join('%s %d' % kv for kv in sorted(kinds.items())))
    passed = kinds.pop('pass', 0)
    failed = sum(kinds.values())
    if opt.json:
        with open(opt.json, 'w') as fh:
            json.dump(dict(tool=opt.tool, passed=passed, failed=failed, cases=rows), fh, indent=1)
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
