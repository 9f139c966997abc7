# SPDX-License-Identifier: Apache-2.0
"""Lowered text for CUDA: which loops are kernels, and the host function that launches them."""
