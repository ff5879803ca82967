"""What programs of fits cost on every kind of device: `python -m benchmarks.device`.

They are compiled for each, compared (`right`) and timed (`gradients`, `draws`), beside what the
device can do at most (`roofline`) and other ways to write and to sample the model (`forms`,
`sampling`). `suite` has them in the order in which they are wanted.
"""
