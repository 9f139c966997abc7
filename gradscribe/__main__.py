"""python -m gradscribe"""
import sys

from gradscribe.command import main

sys.exit(main())
