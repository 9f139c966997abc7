# SPDX-License-Identifier: Apache-2.0
"""Users' CUDA kernels: what one of their threads does, as a function, and its pullback for arrays that are given."""
