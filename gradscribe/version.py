# SPDX-License-Identifier: Apache-2.0
"""The version number; setup.cfg has it as well."""
__version__ = "0.1.0"
