# SPDX-License-Identifier: Apache-2.0
"""The live page: ports, functions, and what is written in its fields.  Add new cases at the end, then `make golden`."""
import errno
from http.server import BaseHTTPRequestHandler
from unittest import mock

import numpy as np
from errors.cases import refused

from gradscribe import kinds, live, live_view
from gradscribe.ast_transform.source.diagnose import KindError


def heat(u, k):
    return np.sum(k * (u[1:] - u[:-1]) ** 2)


def arguments(text, trusted=""):
    return live_view.arguments(live_view.Asked("grad(f)", text, False, trusted))


@refused(KindError)
def live_page_of_a_module_that_is_not_there():
    live.Page(live.Wanted(["no_such_module_anywhere:f"], [], ""))


@refused(KindError)
def live_page_on_a_port_beyond_the_last():
    live.listening(65536, BaseHTTPRequestHandler)


@refused(KindError)
def live_page_on_a_port_that_is_taken():
    with mock.patch.object(live, "Server", side_effect=OSError(errno.EADDRINUSE, "Address already in use")):
        live.listening(8000, BaseHTTPRequestHandler)


@refused(KindError)
def live_page_on_a_port_of_the_system():
    with mock.patch.object(live, "Server", side_effect=PermissionError(errno.EACCES, "Permission denied")):
        live.listening(80, BaseHTTPRequestHandler)


@refused(KindError)
def field_of_a_function_alone():
    live_view.made(heat, "f")


@refused(KindError)
def field_of_an_unfinished_transformation():
    live_view.made(heat, "grad(f, argnums=(0, 1)")


@refused(KindError)
def field_of_another_name():
    live_view.made(heat, "gradient(f)")


@refused(KindError)
def field_of_a_thousand_transformations():
    live_view.made(heat, "grad(" * 1000 + "f" + ")" * 1000)


@refused(KindError)
def field_of_too_many_kinds():
    arguments("float64[8], float" + ", 1" * 1000)


@refused(KindError)
def field_of_a_class_that_is_not_named():
    arguments("subprocess.Popen(args='ls')", "fractions.Fraction(numerator=1)")


@refused(KindError)
def field_of_arrays_that_are_too_large():
    arguments("float64[4000, 4000], float")


@refused(KindError)
def field_of_a_batch_of_parts():
    fn = live_view.made(heat, "vmap(f, in_axes=((0, 1), None))")
    live_view.given(fn, *arguments("float64[8], float"), heat)


@refused(KindError)
def kinds_with_more_entries_than_are_allowed():
    kinds.example("float64[n, n], float64[n]", most=100)
