# SPDX-License-Identifier: Apache-2.0
"""The loop form: what is compiled, as typed loops over entries, and the passes over it."""
