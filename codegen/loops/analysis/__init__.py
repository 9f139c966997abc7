# SPDX-License-Identifier: Apache-2.0
"""Analyses of the loop form: pure functions of a function, a block or a statement, which all passes share."""
