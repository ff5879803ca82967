"""The version of the package, for whoever writes down what made a number."""

__version__ = "0.1.0"
