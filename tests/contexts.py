"""Answers of workers in contexts that correlate."""

import numpy as np


def answers_in_contexts(seed, rho, images=400, contexts=2, each=5):
    """Image, context and answer: a context's frequency is a beta around the image's."""
    rng = np.random.default_rng(seed)
    s = rng.beta(3, 1.2, images)
    phi = 1 / rho - 1 if rho else np.inf
    there = np.repeat(s[:, None], contexts, axis=1)
    if rho:
        there = rng.beta(there * phi, (1 - there) * phi)
    image, context, _ = np.indices((images, contexts, each))
    answer = rng.random(image.shape) < there[:, :, None]
    return image.ravel(), context.ravel(), answer.ravel()
