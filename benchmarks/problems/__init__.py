"""Benchmark problems in plain NumPy as a scientist would write them, each with versions for JAX, autograd and PyTorch."""
