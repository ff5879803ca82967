"""`bayesrep collect plan`: what a replication takes whose intervals have some width."""

import math
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, get_args

import bayesrep
from bayesrep.choices import Prior
from bayesrep.commands.options import given_options, keep_compiled, read_draws
from bayesrep.commands.output import DONE_STATUS, FINDING_STATUS, describe_kept_work, emit, say
from bayesrep.errors import ConvergenceWarning, OptionError
from bayesrep.studies.vocabulary import IMAGE_WORDS

EXAMPLE = "--pilot my-pilot --width 2 --cost-answer 0.03 --cost-image 0.1"

MIN_CLASSIFIERS = 5


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("--pilot", type=Path, metavar="STUDY", help="a small study like the planned one")
    option("--posterior", type=Path, metavar="FILE", help="posterior of the pilot, if it is fitted")
    option("--prior", choices=get_args(Prior), help="published populations in place of a pilot")
    option(
        "--width",
        type=float,
        metavar="POINTS",
        help="width wanted of the mean gap's 95 %% interval",
    )
    option("--budget", type=float, metavar="MONEY", help="most money to spend")
    option("--cost-answer", type=float, required=True, metavar="MONEY", help="price of one answer")
    option(
        "--cost-image",
        type=float,
        required=True,
        metavar="MONEY",
        help="price of one image of the replication",
    )
    option(
        "--workers",
        type=int,
        metavar="N",
        help="number of workers in all (default: another for every answer)",
    )
    option("--most-images", type=int, metavar="N", help="most images in each data set")
    option(
        "--batch",
        type=float,
        metavar="MONEY",
        help="say what to buy next for this much, after the pilot",
    )
    option("--keep", type=Path, metavar="FOLDER", help="folder for finished work, to resume from")


def describe_kept(arguments: Namespace) -> str:
    return describe_kept_work(arguments.keep)


def run(arguments: Namespace) -> int:
    keep_compiled()
    _check(arguments)
    from bayesrep.planning import Limits, Prices, plan, published_world
    from bayesrep.planning.collection_plan import possible_answers
    from bayesrep.report.plan_text import plan_facts, plan_text

    prices = Prices(arguments.cost_answer, arguments.cost_image)
    common: dict[str, Any] = given_options(arguments, plan)
    common |= {"kept": arguments.keep, "progress": not arguments.quiet}
    named = {"images": arguments.most_images, "budget": arguments.budget}
    limits = Limits(**{name: value for name, value in named.items() if value is not None})
    common["width"] = None if arguments.width is None else arguments.width / 100
    # Impossible limits are refused now, before the pilot is read or fitted.
    if arguments.batch is None:
        options = given_options(arguments, possible_answers)
        possible_answers(prices, width=common["width"], limits=limits, **options)
    words, heading = IMAGE_WORDS, f"Populations: {arguments.prior}, published."
    if arguments.pilot is None:
        worlds = [published_world(arguments.prior, MIN_CLASSIFIERS)]
    else:
        worlds, fitted, leniency, heading = _pilot(arguments)
        common["leniency"] = leniency
        words = fitted.words
        if arguments.batch is not None:
            return _recommend_purchase(arguments, worlds, prices, fitted, common)
    result = plan(worlds, prices, limits=limits, **common)
    text = f"{heading}\n{plan_text(result, prices, words)}"
    emit(arguments, text, plan_facts(result, prices))
    if result.reached:
        return DONE_STATUS
    say(
        f"no design within the limits has a width of {arguments.width:g} points; the narrowest "
        f"has {100 * result.width:.2f}"
    )
    return FINDING_STATUS


def _check(arguments: Namespace) -> None:
    if (arguments.pilot is None) == (arguments.prior is None):
        raise OptionError("one-of-pilot-prior")
    if arguments.posterior is not None and arguments.pilot is None:
        raise OptionError("posterior-without-pilot")
    if arguments.batch is not None and (arguments.pilot is None or arguments.width is None):
        raise OptionError("batch-without-pilot-width")
    if arguments.batch is not None and not 0 < arguments.batch < math.inf:
        raise OptionError("batch-money-not-positive", money=arguments.batch)
    if arguments.batch is not None and arguments.budget is not None:
        raise OptionError("batch-with-budget")


def _pilot(arguments: Namespace) -> tuple[Any, Any, float, str]:
    """Populations by the pilot's posterior, itself, its workers' leniency, and what to say."""
    from bayesrep.planning import leniency_of, worlds_of
    from bayesrep.planning.collection_plan import PLAN_STUDIES
    from bayesrep.planning.populations import DEFAULT_LENIENCY
    from bayesrep.posterior.fitted import Fitted

    study = bayesrep.read_study(arguments.pilot)
    if arguments.posterior is not None:
        posterior = read_draws(arguments.posterior)
    else:
        # `require_convergence` refuses one that has not converged, in one line.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = bayesrep.fit(study, seed=arguments.seed or 0, progress=not arguments.quiet)
    fitted = Fitted(study, posterior).require_convergence()
    seed = arguments.seed or 0
    worlds = worlds_of(fitted, count=PLAN_STUDIES, classifiers=MIN_CLASSIFIERS, seed=seed)
    known = leniency_of(fitted)
    leniency = DEFAULT_LENIENCY if known is None else known
    words = fitted.words
    sizes = [len(study.datasets[role].images) for role in ("reference", "replication")]
    heading = (
        f"Pilot {study.name}: {sizes[0]:,} and {sizes[1]:,} {words.images}. "
        f"{words.workers.title()} differ by {leniency:.2f} on the probit scale"
        + (" (assumed)." if known is None else ".")
    )
    # Populations from a small pilot are poorly known; the plan inherits that error.
    if min(sizes) < 100:
        say(
            f"a pilot of {min(sizes)} {words.images} says little: widths may be off by a half, and "
            f"so numbers of {words.images} by two times or more"
        )
    return worlds, fitted, leniency, heading


def _recommend_purchase(
    arguments: Namespace, worlds: Any, prices: Any, fitted: Any, common: dict[str, Any]
) -> int:
    import numpy as np

    from bayesrep.numerics.estimands import INTERVAL
    from bayesrep.planning import Design, next_batch
    from bayesrep.report.plan_text import batch_text

    study = fitted.images
    n_shown = [study.datasets[role].shown for role in ("reference", "replication")]
    images = int(round(np.mean([len(each) for each in n_shown])))
    answers = int(round(float(np.concatenate(n_shown).mean())))
    design = Design(images, answers, arguments.workers, 1)
    # The width so far is that of the mean over classifiers, as a plan counts it.
    low, high = np.quantile(fitted.draws_over_crowds.mean(axis=-1), INTERVAL)
    now, target = float(high - low), arguments.width / 100
    facts: dict[str, Any] = {"width": now, "wanted": target, "stop": now <= target}
    if now <= target:
        text = f"Stop: the interval is {100 * now:.2f} points wide, and {100 * target:g} were asked"
        return emit(arguments, text, facts | {"rows": []})
    options = {
        name: common[name] for name in given_options(arguments, next_batch) if name in common
    }
    options |= {name: common[name] for name in ("leniency", "kept", "progress")}
    purchases = next_batch(
        worlds, prices, design=design, width_now=now, money=arguments.batch, **options
    )
    facts["rows"] = [each._asdict() for each in purchases]
    return emit(arguments, batch_text(purchases, design, now, target, fitted.words), facts)
