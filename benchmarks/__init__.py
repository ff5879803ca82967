"""One module for each measured number: ``python -m benchmarks.NAME``."""
