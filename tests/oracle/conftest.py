"""JAX compiles each operation anew for each shape, which is most of these tests' time: it shall not polish what it
compiles.  The two flags more than halve it; a version of XLA that does not know one of them would end the process, so
a process of its own is asked first.
"""
import os
import subprocess
import sys

FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
ASKED = "import jax; jax.numpy.ones(2) + 1"

if "XLA_FLAGS" not in os.environ:       # workers have it from the process that starts them
    found = subprocess.run([sys.executable, "-c", ASKED], env=os.environ | {"XLA_FLAGS": FLAGS}, capture_output=True)
    os.environ["XLA_FLAGS"] = "" if found.returncode else FLAGS
