"""One module for each published table or figure: ``python -m experiments.NAME``."""
