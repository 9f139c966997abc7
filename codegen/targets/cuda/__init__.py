# SPDX-License-Identifier: Apache-2.0
"""The CUDA target: makes kernels of loops, and a host function that launches them."""
