# SPDX-License-Identifier: Apache-2.0
"""stax: layers as pairs (init_fun, apply_fun), which are those of gs.nn; gs.nn has more of them.

>>> import numpy as np
>>> from gradscribe import random
>>> init_fun, apply_fun = serial(Dense(4), Relu, Dense(2), LogSoftmax)
>>> shape, params = init_fun(random.key(0), (-1, 3))
>>> shape, apply_fun(params, np.ones((5, 3))).shape
((-1, 2), (5, 2))
"""
from gradscribe.nn import (
    AvgPool,
    BatchNorm,
    Conv,
    Conv1DTranspose,
    ConvTranspose,
    Dense,
    Dropout,
    Elu,
    Exp,
    FanInConcat,
    FanInSum,
    FanOut,
    Flatten,
    Gelu,
    GeneralConv,
    GeneralConvTranspose,
    Identity,
    LeakyRelu,
    LogSoftmax,
    MaxPool,
    Relu,
    Selu,
    Sigmoid,
    Softmax,
    Softplus,
    SumPool,
    Tanh,
    elementwise,
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    parallel,
    relu,
    selu,
    serial,
    shape_dependent,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from gradscribe.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = ["AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp",
           "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity",
           "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh",
           "elementwise", "elu", "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal",
           "ones", "parallel", "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus",
           "standardize", "zeros"]

glorot, randn, logsoftmax = glorot_normal, normal, log_softmax      # older names
