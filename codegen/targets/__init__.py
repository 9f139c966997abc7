# SPDX-License-Identifier: Apache-2.0
"""Targets other than the CPU that the loop form is compiled for: one folder each, with its passes and its printer."""
