"""Benchmark of a GPU: whether it is seen, correct, and faster: `bayesrep bench`.

Programs of fits are compiled for every kind of device, their results compared (`right`) and timed
(`gradients`, `draws`), beside what the device can do at most (`roofline`). `parts` has
them in the order in which they are wanted.
"""
