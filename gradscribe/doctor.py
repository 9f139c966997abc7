# SPDX-License-Identifier: Apache-2.0
"""`gradscribe doctor`: which packages and devices are there, and what to install for the rest."""
import importlib
import importlib.metadata
import platform
import sys

import numpy as np

from gradscribe.codegen import cache
from gradscribe.runtime import device

NEEDED = ("numpy", "numba", "llvmlite", "scipy", "gast", "astor")
MORE = {"rich": "colours in `gradscribe show`", "IPython": "display in notebooks",
        "matplotlib": "plots of the notebooks", "jax": "comparisons in benchmarks and tests"}
OF_CUDA = {"numba-cuda": ("numba-cuda", "numba-cuda-mlir"), "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
           "nvidia-nvjitlink": ("nvidia-nvjitlink",)}


def report() -> str:
    """One line for each package or facility; for a missing one, the command that installs it."""
    lines = [f"python      {platform.python_version()} ({sys.executable})", f"gradscribe  {version('gradscribe')}"]
    lines += [f"{name:11} {version(name)}" for name in NEEDED]
    lines += ["", f"BLAS        {blas()}", f"threads     {threads()}", f"CUDA        {cuda()}", f"MPI         {mpi()}",
              f"cache       {cached()}", ""]
    for name, use in MORE.items():
        found = version(name.lower())
        lines.append(f"{name.lower():11} {found}" if found != "missing" else
                     f"{name.lower():11} missing ({use}): pip install {name.lower()}")
    return "\n".join(lines)


def version(name):
    """The version of an installed package, or "missing"."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def blas():
    """The name and the version of the BLAS that NumPy was built with."""
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{built.get('name', 'unknown')} {built.get('version', '')}".strip()


def threads():
    """The number of Numba's threads, and its threading layers that are installed."""
    import numba
    found = []
    for layer, module in (("tbb", "numba.np.ufunc.tbbpool"), ("omp", "numba.np.ufunc.omppool"),
                          ("workqueue", "numba.np.ufunc.workqueue")):
        try:
            importlib.import_module(module)
            found.append(layer)
        except ImportError:
            pass
    return f"{numba.config.NUMBA_NUM_THREADS} by {', '.join(found) or 'none'}"


def cuda():
    """The devices, the packages that they miss, and the back end that `target="cuda"` uses."""
    found = "no device"
    try:
        from numba import cuda as numba_cuda
        if numba_cuda.is_available():
            found = ", ".join(str(d.name.decode() if isinstance(d.name, bytes) else d.name) for d in numba_cuda.gpus)
    except Exception as error:          # a broken driver may raise anything; the rest of the report is still useful
        found = f"not usable: {type(error).__name__}: {error}"
    missing = [name for name, names in OF_CUDA.items() if all(version(n) == "missing" for n in names)]
    needed = f"; missing: {', '.join(missing)}: pip install 'gradscribe[cuda]'" if missing else ""
    return f"{found}{needed}; target='cuda' is bound to {device.chosen()!r}"


def mpi():
    """The version of mpi4py, or how to install it."""
    found = version("mpi4py")
    return found if found != "missing" else "missing: pip install mpi4py mpich"


def cached():
    """The cache's folder, number of files and size."""
    folder = cache.folder()
    if folder is None:
        return "off"
    sizes = [about.st_size for _, about in cache.files(folder)]
    return f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"
