"""The sections of the report, one file each: its numbers, its words, its charts, its figures."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, cast

from bayesrep.choices import FEW_REPLICATES
from bayesrep.errors import BayesrepError, PosteriorError, Violation
from bayesrep.estimators.analysis import Analysis, check_bootstrap
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.progress import progress_bar
from bayesrep.protocols.people import People
from bayesrep.report.pictures import Pictures
from bayesrep.report.sections.accuracies import Accuracies
from bayesrep.report.sections.answer import Answer, Opening
from bayesrep.report.sections.bias import Bias
from bayesrep.report.sections.curves import CurvesSection
from bayesrep.report.sections.frequencies import Frequencies
from bayesrep.report.sections.image import Image
from bayesrep.report.sections.people import PeopleAnswers
from bayesrep.report.sections.photographs import Photographs
from bayesrep.report.sections.ranking import Ranking
from bayesrep.report.sections.section import Block, Section, Source, point_estimates, quiet
from bayesrep.report.sections.trust import Trust
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import words_of

SECTION_TYPES: Sequence[type[Section]] = (
    Answer,
    Trust,
    Accuracies,
    Ranking,
    Frequencies,
    Image,
    Bias,
    CurvesSection,
    PeopleAnswers,
    Photographs,
)

Kind = TypeVar("Kind", bound=Section)


@dataclass(frozen=True, eq=False)
class Content:
    """All that a report shows of a study: every section's numbers, or why there are none."""

    study: Study
    sections: Mapping[type[Section], Section | Violation]

    def __getitem__(self, kind: type[Kind]) -> Kind:
        """A section's numbers; `PosteriorError` where there are none."""
        section = self.sections[kind]
        if isinstance(section, Violation):
            raise PosteriorError(section)
        return cast(Kind, section)

    @property
    def missing_sections(self) -> dict[str, str]:
        """Name the sections that cannot be shown, with the reasons."""
        sections = ((kind.takes, self.sections[kind]) for kind in self._shown_sections)
        why = ((t, s if isinstance(s, Violation) else s.missing) for t, s in sections)
        return {takes: text for takes, text in why if text}

    @property
    def opening(self) -> Opening | None:
        """The first screen; None where there is no answer."""
        answer = self.sections[Answer]
        return answer.opening() if isinstance(answer, Answer) else None

    @property
    def caveat(self) -> str:
        """Why the fit has no answer, as a clause; empty where it has one."""
        trust = self.sections[Trust]
        return trust.caveat if isinstance(trust, Trust) else ""

    @property
    def _shown_sections(self) -> list[type[Section]]:
        """All but the optional ones of which nothing is given."""
        return [k for k in SECTION_TYPES if not (k.optional and isinstance(self.sections[k], str))]

    def blocks(self) -> Iterator[Block]:
        """The parts of the page in order; what cannot be shown is told at the end, and why."""
        words = words_of(self.study)
        sections = [s for k in self._shown_sections if not isinstance(s := self.sections[k], str)]
        every = [block for section in sections for block in section.blocks()]
        yield from sorted(every, key=lambda block: block.last)
        lacking: dict[str, list[str]] = {}
        for kind in self._shown_sections:
            if isinstance(why := self.sections[kind], str):
                lacking.setdefault(why, []).append(words.fill(kind.title))
        if lacking:
            sentences = [f"{'; '.join(titles)}: {why}." for why, titles in lacking.items()]
            title = "What is not shown"
            yield Block(id="missing", short="Not shown", title=title, sentences=sentences)


@quiet()
def gather(
    study: Study,
    posterior: Posterior | None = None,
    *,
    bootstrap: int = FEW_REPLICATES,
    seed: int = 0,
    points: Sequence[Analysis] = (),
    people: tuple[Predictions, People] | None = None,
    pictures: Pictures | None = None,
    progress: bool = False,
) -> Content:
    """Compute everything that a report shows."""
    check_bootstrap(bootstrap)
    fitted = None if posterior is None else Fitted(study, posterior)
    sections: dict[type[Section], Section | Violation] = {}
    if pictures is not None:  # a wrong folder is refused before all that takes long
        sections[Photographs] = Photographs.compute(Source(study, fitted, pictures=pictures))
    with ThreadPoolExecutor(max_workers=1) as pool:
        # The point estimates and what is read off the posterior are two halves of the time: the
        # sections that wait for the one come after those that take the other.
        estimated = None if points else pool.submit(point_estimates, study, bootstrap, seed)
        waits = estimated.result if estimated else lambda: points
        source = Source(study, fitted, waits, people, pictures)
        with progress_bar(len(SECTION_TYPES), "part", show=progress) as bar:
            for kind in sorted(SECTION_TYPES, key=lambda kind: kind.waits):
                bar.stage(f"report: {source.words.fill(kind.title)}")
                if kind not in sections:
                    try:
                        sections[kind] = kind.compute(source)
                    except BayesrepError as error:
                        sections[kind] = error.violation
                bar.advance(1)
        return Content(study, sections)
