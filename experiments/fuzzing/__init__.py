"""Files of strangers for `python -m experiments.fuzz`: samples, what is done to them, readers."""
