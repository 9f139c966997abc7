"""Two modules of tests."""
