"""What JAX's tests use of absl: tests written out once for each set of parameters."""
