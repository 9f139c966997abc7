# SPDX-License-Identifier: Apache-2.0
"""gs.nn: layers as pairs of functions, initialisers, losses, and the functions of jax.nn."""
from gradscribe.jax_names import missing as _missing
from gradscribe.nn import attention, convolutional, functions, initializers, layers, losses, norms, recurrent
from gradscribe.nn.attention import *  # noqa: F403
from gradscribe.nn.convolutional import *  # noqa: F403
from gradscribe.nn.functions import *  # noqa: F403
from gradscribe.nn.layers import *  # noqa: F403
from gradscribe.nn.losses import *  # noqa: F403
from gradscribe.nn.norms import *  # noqa: F403
from gradscribe.nn.recurrent import *  # noqa: F403

__all__ = ["initializers", *attention.__all__, *convolutional.__all__, *functions.__all__, *layers.__all__,
           *losses.__all__, *norms.__all__, *recurrent.__all__]


def __getattr__(name):
    raise _missing(__name__, name)
