"""Words that have no counterpart: what they stand for raises Inside where a test uses it, not where it is imported."""
import importlib.abc
import importlib.machinery
import sys
import types

RUNNING = []                            # not empty while a test runs; before, its module may make what it likes


class Inside(BaseException):
    """A test asks for a part of JAX itself; no test catches this by accident."""


class Missing(Exception):
    """A public word of JAX without a counterpart: the test fails."""


PUBLIC = ("jax.pure_callback", "jax.lax.scatter_apply", "jax.lax.fft", "jax.random.")


class Absent:
    """A name of JAX's insides; it can be looked up, handed on and subclassed, and nothing else once tests run."""

    def __init__(self, name):
        self.name_, self.__name__ = name, name.rpartition(".")[2]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.name_}.{name}")

    def __call__(self, *args, **kwargs):
        if not RUNNING:
            return Absent(f"{self.name_}()")
        if self.__name__ == "cache_clear":      # of what is traced or compiled: there is no such cache
            return None
        raise _refusal(self.name_)

    def __iter__(self):
        self()
        return iter(())

    def __mro_entries__(self, bases):
        return ()

    def normal_form_(self, reader, args, words, node):
        raise _refusal(self.name_)

    __getitem__ = __setitem__ = __enter__ = __len__ = __instancecheck__ = __call__

    def __bool__(self):
        self()
        return False

    def __exit__(self, *args):
        return None

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __repr__(self):
        return self.name_


def _refusal(name):
    return Missing(f"{name} has no counterpart") if name.startswith(PUBLIC) else Inside(name)


class Module(types.ModuleType):
    """A module all of whose names are absent, but for those that are set."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives each part of JAX that has no file here a module of absent names."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith("jax."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def install():
    sys.meta_path.append(Finder())
