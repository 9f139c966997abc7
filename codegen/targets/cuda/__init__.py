# SPDX-License-Identifier: Apache-2.0
"""The loop form for CUDA."""
