# SPDX-License-Identifier: Apache-2.0
"""Users' CUDA kernels: the work of one thread as a function, and its pullback into adjoint arrays of the launcher."""
