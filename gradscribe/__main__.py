# SPDX-License-Identifier: Apache-2.0
"""python -m gradscribe"""
import sys

from gradscribe.command import main

sys.exit(main())
