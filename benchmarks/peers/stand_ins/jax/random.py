"""gs.random."""
import gradscribe as gs


def __getattr__(name):
    return getattr(gs.random, name)
