# SPDX-License-Identifier: Apache-2.0
"""The version number; of a release, release/build.py writes that of the tag here."""
__version__ = "0.1.0"
