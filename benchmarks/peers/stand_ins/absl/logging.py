"""Python's own logging."""
from logging import *  # noqa: F403
