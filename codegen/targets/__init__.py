# SPDX-License-Identifier: Apache-2.0
"""What the loop form is compiled for beside the processor: a folder each, of marks on loops and a printer."""
