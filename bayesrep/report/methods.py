"""Labels and colours of every method, on paper and on the page."""

from collections.abc import Mapping
from typing import NamedTuple


class Look(NamedTuple):
    """Label and colours of one method."""

    label: str  # within a sentence
    css: str  # the page's variable that holds its colour
    paper: str  # its colour in figures for a paper, after Okabe & Ito (2008)
    light: str  # its colour on the light page, then on the dark one
    dark: str


RAW_LOOK = Look("as measured", "--raw", "#D55E00", "#c4500a", "#ff9a57")
NAIVE_LOOK = Look("naive matching", "--naive", "#E69F00", "#b98500", "#f0c04a")
JACKKNIFE_LOOK = Look("jackknife", "--jackknife", "#009E73", "#00805f", "#3fc7a2")
EM_SPLINE = Look("EM + spline", "--em-spline", "#CC79A7", "#b5568a", "#e79cc4")
POSTERIOR_LOOK = Look("posterior", "--posterior", "#0072B2", "#0a6cb0", "#69b7f0")
OTHER_LOOK = Look("other", "--other", "#8a8a8a", "#57606a", "#a3adb8")
ESTIMATOR_LOOKS: Mapping[str, Look] = {
    "raw": RAW_LOOK,
    "naive": NAIVE_LOOK,
    "jackknife": JACKKNIFE_LOOK,
    "em-spline": EM_SPLINE,
}


def look_of(method: str) -> Look:
    """Return the label and colours of an estimator, with options or without, or of a posterior."""
    if method in ESTIMATOR_LOOKS:
        return ESTIMATOR_LOOKS[method]
    name = method.partition("(")[0]
    if name in ESTIMATOR_LOOKS:
        return ESTIMATOR_LOOKS[name]._replace(label=method)
    from bayesrep.models import MODELS

    return POSTERIOR_LOOK if name in MODELS else OTHER_LOOK._replace(label=method)


def label_of(method: str) -> str:
    """The method's name within a sentence."""
    return look_of(method).label


def title_of(method: str) -> str:
    """The method's name at the beginning of a sentence."""
    label = label_of(method)
    return label[0].upper() + label[1:]


def style() -> str:
    """The page's variables of these colours."""
    looks = (*ESTIMATOR_LOOKS.values(), POSTERIOR_LOOK, OTHER_LOOK)
    light, dark = (
        " ".join(f"{look.css}: {getattr(look, scheme)};" for look in looks)
        for scheme in ("light", "dark")
    )
    return f":root {{ {light} }}\n" + (
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )
