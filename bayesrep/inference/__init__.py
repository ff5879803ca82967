"""From a model to its posterior: starting point, sampler, verdict; it knows no particular model."""
