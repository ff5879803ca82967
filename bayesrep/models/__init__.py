"""Probability models as plain NumPyro functions; they know no sampler."""
