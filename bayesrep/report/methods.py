"""What every method is called, and its colours on paper and on the page."""

from collections.abc import Mapping
from typing import NamedTuple


class Look(NamedTuple):
    """How a method is shown.

    Attributes
    ----------
    label
        Within a sentence.
    css
        The page's variable that holds its colour.
    paper
        Its colour in figures for a paper, after Okabe & Ito (2008).
    light, dark
        Its colours on the page.
    """

    label: str
    css: str
    paper: str
    light: str
    dark: str


RAW_LOOK = Look("as measured", "--raw", "#D55E00", "#c4500a", "#ff9a57")
NAIVE = Look("naive matching", "--naive", "#E69F00", "#b98500", "#f0c04a")
JACKKNIFE = Look("jackknife", "--jackknife", "#009E73", "#00805f", "#3fc7a2")
EM_SPLINE = Look("EM + spline", "--em-spline", "#CC79A7", "#b5568a", "#e79cc4")
POSTERIOR = Look("posterior", "--posterior", "#0072B2", "#0a6cb0", "#69b7f0")
OTHER_LOOK = Look("other", "--other", "#8a8a8a", "#57606a", "#a3adb8")
ESTIMATORS: Mapping[str, Look] = {
    "raw": RAW_LOOK,
    "naive": NAIVE,
    "jackknife": JACKKNIFE,
    "em-spline": EM_SPLINE,
}


def look_of(method: str) -> Look:
    """How a method is shown: an estimator, with options or without, or a model's posterior."""
    if method in ESTIMATORS:
        return ESTIMATORS[method]
    name = method.partition("(")[0]
    if name in ESTIMATORS:
        return ESTIMATORS[name]._replace(label=method)
    from bayesrep.models import MODELS

    return POSTERIOR if name in MODELS else OTHER_LOOK._replace(label=method)


def color_of(method: str) -> str:
    """The method's colour on paper."""
    return look_of(method).paper


def label_of(method: str) -> str:
    """The method's name within a sentence."""
    return look_of(method).label


def title_of(method: str) -> str:
    """The method's name at the beginning of a sentence."""
    label = label_of(method)
    return label[0].upper() + label[1:]


def style() -> str:
    """The page's variables of these colours."""
    looks = (*ESTIMATORS.values(), POSTERIOR, OTHER_LOOK)
    light, dark = (
        " ".join(f"{look.css}: {getattr(look, scheme)};" for look in looks)
        for scheme in ("light", "dark")
    )
    return f":root {{ {light} }}\n" + (
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )
