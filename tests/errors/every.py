"""All files of cases, read."""
import importlib
from pathlib import Path

MODULES = [importlib.import_module(f"errors.{p.stem}") for p in sorted(Path(__file__).parent.glob("cases*.py"))]
