"""Figure 2: why an unbiased but noisy selection frequency does not identify an image.

Hypothetical distributions; no study is needed. (a) True selection frequencies p₁(s) of a reference
and p_flickr(s) of the pool of candidates. (b) The same for the images of which an observed
frequency ŝ = k/n was read,

    p_i(s | ŝ) = p_i(s) p(ŝ | s) / p_i(ŝ),    i = 1, flickr:

whatever the reading, an image of the reference is more likely to have a high s. The paper prints no
parameters; with beta distributions and n binomial answers p_i(s | ŝ) is Beta(a + k, b + n − k).
"""

from typing import Any

import numpy as np
from scipy.stats import beta

from bayesrep.bounds import is_of_kind
from bayesrep.errors import OptionError
from experiments.style import Color, legend_below, panels

BETA_SHAPES = {"1": (8.0, 2.0), "flickr": (3.0, 2.5)}  # a and b
DISTRIBUTION_STYLES = {"1": (Color.BLUE, "-"), "flickr": (Color.RED, "--")}
S_AXIS = np.linspace(0, 1, 401)
EXAMPLE_COUNT, EXAMPLE_ANNOTATORS = 7, 10


def numbers(
    *,
    selected: Any = EXAMPLE_COUNT,
    annotators: Any = EXAMPLE_ANNOTATORS,
    reference: Any = BETA_SHAPES["1"],
    candidates: Any = BETA_SHAPES["flickr"],
) -> dict[str, Any]:
    """Densities on a grid of s, before and after ``selected`` of ``annotators`` chose the image."""
    distributions = {"1": reference, "flickr": candidates}
    for name, pair in (("reference", reference), ("candidates", candidates)):
        if not isinstance(pair, tuple) or len(pair) != 2 or min(pair) <= 0:
            raise OptionError("figure2-beta-not-positive", distribution=name, parameters=pair)
    if not (is_of_kind(selected, int) and is_of_kind(annotators, int)):
        raise OptionError("figure2-counts-not-whole")
    if not 0 <= selected <= annotators or annotators < 1:
        raise OptionError(
            "figure2-selected-exceeds-annotators", selected=selected, annotators=annotators
        )
    # The posterior of a beta after k of n is Beta(a + k, b + n − k).
    missed = annotators - selected
    return {
        "s": S_AXIS.tolist(),
        "selected": selected,
        "annotators": annotators,
        "density": {i: beta.pdf(S_AXIS, a, b).tolist() for i, (a, b) in distributions.items()},
        "given_reading": {
            i: beta.pdf(S_AXIS, a + selected, b + missed).tolist()
            for i, (a, b) in distributions.items()
        },
    }


def draw(data: dict[str, Any]) -> Any:
    """(a) all images, (b) those with one reading, which a line marks."""
    figure, (every, conditional) = panels(2)
    reading = data["selected"] / data["annotators"]
    for i, (color, style) in DISTRIBUTION_STYLES.items():
        line = {"color": color, "ls": style, "lw": 1.6, "label": f"$p_{{{_name(i)}}}$"}
        every.plot(data["s"], data["density"][i], **line)
        conditional.plot(data["s"], data["given_reading"][i], **line)
    conditional.axvline(reading, color=Color.INK, lw=1, ls=":", label=rf"$\hat{{s}} = {reading:g}$")
    every.set_title("(a) $p_i(s)$", loc="left", fontsize=10)
    conditional.set_title(rf"(b) $p_i(s \mid \hat{{s}} = {reading:g})$", loc="left", fontsize=10)
    for axes in (every, conditional):
        axes.set(xlim=(0, 1), ylim=(0, None), xlabel="true selection frequency s")
    every.set_ylabel("density")
    legend_below(figure)
    return figure


def _name(i: str) -> str:
    return i if i.isdigit() else rf"\mathrm{{{i}}}"
