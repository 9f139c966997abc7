# SPDX-License-Identifier: Apache-2.0
"""What the loop form is written for: each target has marks on loops, and a printer."""
