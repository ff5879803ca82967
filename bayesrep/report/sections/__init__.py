"""The sections of the report, one file each: its numbers, its words, its charts, its figures."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, cast

from bayesrep.errors import BayesrepError, PosteriorError, reason
from bayesrep.estimators.analysis import Analysis
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.protocols.people import People
from bayesrep.report.sections.accuracies import Accuracies
from bayesrep.report.sections.answer import Answer
from bayesrep.report.sections.bias import Bias
from bayesrep.report.sections.curves import Curves
from bayesrep.report.sections.frequencies import Frequencies
from bayesrep.report.sections.image import Image
from bayesrep.report.sections.section import Block, Section, Source, point_estimates, quiet
from bayesrep.report.sections.seen import Seen
from bayesrep.report.sections.trust import Trust
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study

SECTIONS: Sequence[type[Section]] = (
    Answer,
    Accuracies,
    Frequencies,
    Image,
    Bias,
    Curves,
    Seen,
    Trust,
)

Kind = TypeVar("Kind", bound=Section)


@dataclass(frozen=True, eq=False)
class Content:
    """All that a report shows of a study: every section's numbers, or why there are none."""

    study: Study
    sections: Mapping[type[Section], Section | str]

    def __getitem__(self, kind: type[Kind]) -> Kind:
        """A section's numbers; `PosteriorError` where there are none."""
        section = self.sections[kind]
        if isinstance(section, str):
            raise PosteriorError(section)
        return cast(Kind, section)

    @property
    def missing(self) -> dict[str, str]:
        """What cannot be shown, and why."""
        sections = ((kind, self.sections[kind]) for kind in self._shown)
        return {
            kind.takes: why
            for kind, section in sections
            if (why := section if isinstance(section, str) else section.missing)
        }

    @property
    def _shown(self) -> list[type[Section]]:
        """All but the optional ones of which nothing is given."""
        return [k for k in SECTIONS if not (k.optional and isinstance(self.sections[k], str))]

    def blocks(self) -> Iterator[Block]:
        """The parts of the page in order; those that cannot be shown say why."""
        for kind in self._shown:
            section = self.sections[kind]
            if isinstance(section, str):
                yield kind.block(missing=section)
            else:
                yield from section.blocks()


@quiet()
def gather(
    study: Study,
    posterior: Posterior | None = None,
    *,
    bootstrap: int = 50,
    seed: int = 0,
    crowd_sd: float = 0.0,
    points: Sequence[Analysis] = (),
    people: tuple[Predictions, People] | None = None,
) -> Content:
    """Compute everything that a report shows.

    Parameters
    ----------
    study
        The study.
    posterior
        From `bayesrep.fit` or `bayesrep.read_posterior`; None leaves out what takes one.
    bootstrap
        Replicates for the intervals of the point estimates; 0 leaves these out.
    seed
        Of the bootstrap.
    crowd_sd
        As `bayesrep.summarize` takes it.
    points
        The point estimates of all methods, where they are at hand.
    people
        The answers to the reference, and what people see on its images, from
        `bayesrep.protocols.read_people`.

    Raises
    ------
    OptionError
        If `crowd_sd` is no fraction, or the study says who answered.
    PosteriorError
        If the posterior belongs to another study.
    """
    fitted = None if posterior is None else Fitted(study, posterior, crowd_sd)
    with ThreadPoolExecutor(max_workers=1) as beside:
        # The point estimates and what is read off the posterior are two halves of the time: the
        # first sections, which wait for the one, come after the last, which take the other.
        estimated = None if points else beside.submit(point_estimates, study, bootstrap, seed)
        waits = estimated.result if estimated else lambda: points
        source = Source(study, fitted, waits, people)
        return Content(study, {kind: _made(kind, source) for kind in reversed(SECTIONS)})


def _made(kind: type[Section], source: Source) -> Section | str:
    try:
        return kind.of(source)
    except BayesrepError as error:
        return reason(error)
