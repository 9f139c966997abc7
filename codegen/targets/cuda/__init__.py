# SPDX-License-Identifier: Apache-2.0
"""The loop form for CUDA: which loops are kernels, and the host function that launches them."""
