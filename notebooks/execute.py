# SPDX-License-Identifier: Apache-2.0
"""Run each notebook from top to bottom and store what its cells show: `make notebooks`.

python notebooks/execute.py [FILE ...]
"""
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def main(paths):
    for path in [Path(p) for p in paths] or sorted(HERE.glob("*.ipynb")):
        notebook = nbformat.read(path, 4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(notebook, timeout=300, record_timing=False, kernel_name="python3",
                           resources={"metadata": {"path": folder}}).execute()
        notebook.metadata["language_info"] = {"name": "python"}         # of no version: any will do
        nbformat.write(notebook, path)
        print(path.name, f"{os.path.getsize(path):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
