"""A function of one argument out of several."""
import functools


def unary_to_nary(operator):
    """operator(function of one argument, x, ...) -> an operator that takes `argnum`: a number or a sequence of them."""
    @functools.wraps(operator)
    def of_several(fun, argnum=0, *more, **words):
        def called(*args, **kwargs):
            x = args[argnum] if isinstance(argnum, int) else tuple(args[k] for k in argnum)
            return operator(of_one(fun, argnum, args, kwargs), x, *more, **words)
        return called
    return of_several


def of_one(fun, argnum, args, kwargs):
    """fun as a function of args[argnum] alone, or of a tuple of several of them."""
    def unary(x):
        if isinstance(argnum, int):
            return fun(*[x if k == argnum else a for k, a in enumerate(args)], **kwargs)
        return fun(*[x[argnum.index(k)] if k in argnum else a for k, a in enumerate(args)], **kwargs)
    unary.__name__ = get_name(fun)
    return unary


def get_name(fun):
    return getattr(fun, "__name__", "[unknown name]")
