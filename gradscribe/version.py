# SPDX-License-Identifier: Apache-2.0
"""The number of this version; setup.cfg has it as well."""
__version__ = "0.1.0"
