"""A model of one's own, in NumPyro: single images with a difficulty that all classifiers share.

    python -m experiments.shared_difficulty [--images 400] [--classifiers 8] [--draws 500]

`bayesrep.fit` models one classifier's answers at a time and draws all classifiers jointly. Here the
model itself knows that they answer about the same images: image x has a selection frequency s and a
difficulty u, and both are summed over a grid.

    k | n, s       ~  Binomial(n, s)
    s              ~  w_i Beta(a_1, b_1) + (1 − w_i) Beta(a_2, b_2)        in data set i
    correct_c | s, u ~  Bernoulli(σ(α_c + β_c (2 s − 1) − λ u)),   u ~ Normal(0, 1)
    A_c            =  ∫∫ σ(…) p_ref(s) φ(u) ds du                          adjusted accuracy

All it takes of bayesrep are a study's arrays. What it prints is beside `bayesrep.fit`'s.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import logsumexp
from numpyro.infer import MCMC, NUTS
from scipy.special import expit

import bayesrep
from bayesrep import ConvergenceWarning, Study

LOGIT_S = np.linspace(-6, 8, 43)
S = expit(LOGIT_S)
LOG_S, LOG_REST = -np.logaddexp(0, -LOGIT_S), -np.logaddexp(0, LOGIT_S)
"""log s and log(1 − s) at nodes that are evenly spaced in logit s."""
U, WEIGHT = np.polynomial.hermite_e.hermegauss(11)
LOG_WEIGHT = np.log(WEIGHT / WEIGHT.sum())


def arrays(study: Study) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """log P(k | n, s) of the images of both data sets [x, s], and the replication's answers."""
    both = (study.reference, study.replication)
    counts = [
        np.outer(each.selected, LOG_S) + np.outer(each.shown - each.selected, LOG_REST)
        for each in both
    ]
    return tuple(counts), study.replication.correct.astype(float)


def model(counts: Sequence[Array], correct: Array) -> None:
    """NumPyro model; the module's docstring states it."""
    center = numpyro.sample("center", dist.Normal(jnp.array([0.7, 2.2]), 0.5).to_event(1))
    size = numpyro.sample("size", dist.LogNormal(2.5, 0.6).expand([2]).to_event(1))
    share = numpyro.sample("share", dist.Uniform(0.0, 1.0).expand([2]).to_event(1))
    a, b = jax.nn.sigmoid(center) * size, jax.nn.sigmoid(-center) * size
    first, second = jax.nn.log_softmax(jnp.outer(a, LOG_S) + jnp.outer(b, LOG_REST), axis=1)
    reference, replication = (
        jnp.logaddexp(jnp.log(w) + first, jnp.log1p(-w) + second) for w in share
    )

    level = numpyro.sample("level", dist.Normal(-1.0, 2.0))
    slope = numpyro.sample("slope", dist.Normal(3.0, 2.5))
    loading = numpyro.sample("loading", dist.HalfNormal(2.0))
    with numpyro.plate("classifier", correct.shape[1]):
        alpha = numpyro.sample("alpha", dist.Normal(level, 0.75))
        beta = numpyro.sample("beta", dist.Normal(slope, 0.5))
    curve = alpha[:, None] + jnp.outer(beta, 2 * S - 1)
    logit = curve[:, :, None] - loading * jnp.asarray(U)[None, None]
    # An image enters by its answers alone, so that a gradient is a few products of matrices.
    answers = jnp.tensordot(correct, jax.nn.log_sigmoid(logit), 1)
    answers += jnp.tensordot(1 - correct, jax.nn.log_sigmoid(-logit), 1)
    given_s = logsumexp(answers + LOG_WEIGHT[None, None], axis=2)
    numpyro.factor("reference", logsumexp(counts[0] + reference[None], axis=1).sum())
    numpyro.factor("replication", logsumexp(counts[1] + replication[None] + given_s, axis=1).sum())
    mean = jax.nn.sigmoid(logit) @ np.exp(LOG_WEIGHT)
    numpyro.deterministic("adjusted_accuracy", mean @ jnp.exp(reference))


def sample(study: Study, draws: int, seed: int = 0) -> np.ndarray:
    """Draws of the adjusted accuracies [draw, classifier], by NUTS."""
    mcmc = MCMC(NUTS(model), num_warmup=draws, num_samples=draws, progress_bar=False)
    mcmc.run(jax.random.key(seed), *arrays(study))
    return np.asarray(mcmc.get_samples()["adjusted_accuracy"])


def compare(study: Study, draws: int) -> str:
    """A row a classifier: the truth, this model's and `bayesrep.fit`'s means with their sd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, progress=False, dependence=0.0)["posterior"]
    begin = time.perf_counter()
    own = sample(study, draws)
    print(f"{time.perf_counter() - begin:.0f} s by NUTS", file=sys.stderr)
    fitted = posterior["adjusted_accuracy"].values.reshape(-1, len(study.classifiers))
    assert study.truth is not None
    lines = [f"{'classifier':32} {'truth':>6} {'shared difficulty':>18} {'bayesrep.fit':>18}"]
    for name, true, *both in zip(
        study.classifiers, study.truth.adjusted_accuracy, own.T, fitted.T, strict=True
    ):
        told = (f"{100 * each.mean():12.1f} ± {100 * each.std():.1f}" for each in both)
        lines.append(f"{name[:32]:32} {100 * true:6.1f} {' '.join(told)}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare on a simulated study, whose images do have such a difficulty."""
    parser = argparse.ArgumentParser(prog="python -m experiments.shared_difficulty")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--classifiers", type=int, default=8)
    parser.add_argument("--draws", type=int, default=500, help="and as many to warm up")
    asked = parser.parse_args(argv)
    study = bayesrep.simulate_study(images=asked.images, classifiers=asked.classifiers)
    print(compare(study, asked.draws))
    return 0


if __name__ == "__main__":
    sys.exit(main())
