# SPDX-License-Identifier: Apache-2.0
"""Typed trees to text, text to callables; knows nothing of derivatives."""
