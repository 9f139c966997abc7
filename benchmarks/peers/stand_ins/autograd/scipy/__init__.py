"""SciPy's modules, and two functions that autograd spells otherwise."""
