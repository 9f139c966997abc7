# SPDX-License-Identifier: Apache-2.0
"""Code generation: functions in normal form to Python text, compiled code or kernels; independent of derivatives."""
