# SPDX-License-Identifier: Apache-2.0
"""Functions and examples for tests of gs.map_over, and two functions that kill the process that runs them."""
import os
import signal
import time

import numpy as np

X = np.arange(60.0).reshape(20, 3) / 10
W = np.array([0.3, -0.2, 0.5])


def loss(w, x):
    return np.sum(np.tanh(x * w) ** 2)


def killer(folder, x):
    """Kills its process for x = 7, the first time."""
    time.sleep(0.005)
    path = os.path.join(folder, "killed")
    if x == 7 and not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def poison(x):
    """Kills its process for x = 7, each time."""
    time.sleep(0.01)
    if x == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x
