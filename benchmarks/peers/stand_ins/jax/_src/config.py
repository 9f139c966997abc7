"""Settings: double precision is on, everything else stands where JAX has it and can be set without effect."""
import contextlib
import enum

from jax.inside import Absent, Inside


class Setting:
    def __init__(self, name, value):
        self.name, self.value = name, value

    @contextlib.contextmanager
    def __call__(self, value=None, *rest):
        if self.name == "enable_x64" and value is False:
            raise Inside("arithmetic in single precision throughout: a setting of JAX's")
        yield


class ExplicitX64Mode(enum.Enum):
    WARN, ERROR, ALLOW = range(3)


SETTINGS = {"enable_x64": True, "threefry_partitionable": True, "jax_skip_slow_tests": True}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name[0].isupper():
        return Absent(f"jax._src.config.{name}")
    name = name.removeprefix("jax_") if name.removeprefix("jax_") in SETTINGS else name
    return Setting(name, SETTINGS.get(name, False))


def parse_flags_with_absl():
    """No flags."""


def update(name, value):
    """Nothing to set."""
