"""A posterior and the study that it was fitted to: what every later room takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesrep.errors import ConvergenceError, OptionError, PosteriorError, StudyError
from bayesrep.files.netcdf import Group
from bayesrep.numerics.codes import Codes
from bayesrep.numerics.settings import refuse_fork
from bayesrep.posterior.files import order_posterior
from bayesrep.posterior.groups import (
    FitRecord,
    Posterior,
    cells_along,
    draws_of,
    need_group,
    place_of_cells,
    read_record,
)
from bayesrep.posterior.influences import Influences
from bayesrep.posterior.likelihood import decode_some, logit_codes
from bayesrep.studies.shown import brief, number
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.words import Words
from bayesrep.types import Float, Int

if TYPE_CHECKING:
    from bayesrep.models.model import Crowd
    from bayesrep.posterior.workers import AnsweredImages

MAX_WHOLE_CLASSIFIERS, N_DIRECTIONS = 1_000, 32
"""Classifiers up to which a covariance is whole; of more, it is in so many directions."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A study and a posterior of it; what is worked out of the two is kept.

    Parameters
    ----------
    study
        The study, or its sufficient statistics where nothing is asked of single images.
    posterior
        From `bayesrep.fit` or `bayesrep.read_posterior`.
    crowd_sd
        By how much a data set's mean selection frequency would differ from one crowd of annotators
        to another: a standard deviation that is assumed where it is not known who answered.

    Raises
    ------
    OptionError
        If the standard deviation is not a fraction, or nothing is left to assume.
    PosteriorError
        If the posterior is another study's, does not say whose, or has no adjusted accuracies.

    Notes
    -----
    A posterior of a study is one of these images, answer by answer. One fitted to sufficient
    statistics alone is one of every study that has them, since it depends on nothing else; and
    where statistics are all that is given, they are all that is compared.
    """

    study: Study | SufficientStatistics
    posterior: Posterior
    crowd_sd: float = 0.0

    def __post_init__(self) -> None:
        refuse_fork()
        attributes = self.group.attrs
        if "statistics_digest" not in attributes:
            raise PosteriorError("posterior-of-unknown-counts")
        if attributes["statistics_digest"] != self.statistics.digest():
            raise PosteriorError("posterior-of-another-study", study=self._study_name)
        fitted = attributes.get("study_fingerprint")
        if isinstance(self.study, Study) and fitted and fitted != self.study.fingerprint():
            raise PosteriorError("posterior-of-other-images", study=self._study_name)
        # By name, not by place: people select and sort classifiers for their figures.
        names = {"classifier": self.statistics.classifiers, "dataset": self.record.roles}
        object.__setattr__(self, "posterior", order_posterior(self.posterior, names))
        vars(self).pop("group")  # of the order before
        if not 0 <= self.crowd_sd <= 0.5:
            raise OptionError("crowd-sd-out-of-range", crowd_sd=self.crowd_sd)
        if self.crowd_sd and not self._nameless:
            raise OptionError("crowd-sd-with-known-workers")

    def __repr__(self) -> str:
        made, sizes = self.record, self.group.sizes
        return brief(
            self,
            f"{made.name} by {made.method}",
            f"{sizes['chain']} x {sizes['draw']:,} draws",
            number(sizes["classifier"], "classifier"),
            f"of {self.study!r}",
        )

    @property
    def _study_name(self) -> str:
        return repr(self.study.name) if isinstance(self.study, Study) else "that of the counts"

    @cached_property
    def statistics(self) -> SufficientStatistics:
        """The study's sufficient statistics."""
        return SufficientStatistics.of(self.study)

    @property
    def words(self) -> Words:
        """The study's words."""
        return self.statistics.words

    @cached_property
    def group(self) -> Group:
        """The draws: the group "posterior"."""
        return self.need("posterior", "adjusted_accuracy")

    @cached_property
    def record(self) -> FitRecord:
        """How the posterior was made."""
        return read_record(self.posterior)

    def need(self, name: str, *variables: str) -> Group:
        """A group that must be there with some variables; `PosteriorError` where it is not."""
        return need_group(self.posterior, name, *variables)

    def require_convergence(self, *, allow_unconverged: bool = False) -> "Fitted":
        """Itself, where it converged or need not have; else `ConvergenceError` with the verdict."""
        if not self.group.attrs.get("converged") and not allow_unconverged:
            verdict = self.group.attrs.get("verdict", "the fit carries no verdict")
            raise ConvergenceError("not-converged", verdict=verdict)
        return self

    @property
    def images(self) -> Study:
        """The study with its images.

        Raises
        ------
        StudyError
            If only its statistics are known.
        """
        if not isinstance(self.study, Study):
            raise StudyError("statistics-instead-of-study")
        return self.study

    @cached_property
    def adjusted_draws(self) -> Float[np.ndarray, "chain draw classifier"]:
        """Draws of the adjusted accuracies."""
        return np.asarray(self.group["adjusted_accuracy"].values, dtype=float)

    def cell_of_images(self, role: str) -> Int[np.ndarray, "image"]:
        """Index of every image of a data set among the posterior's cells of it."""
        data, column = self.images.datasets[role], self.record.grouping
        if column and column not in data.groups:
            raise PosteriorError("posterior-groups-not-in-study", column=column[:50])
        group = data.groups[column] if column else np.full(len(data.shown), "")
        cells = cells_along(self.need("log_density"), role)
        return place_of_cells(cells, group, data.selected, data.shown)

    @cached_property
    def draws_over_crowds(self) -> Float[np.ndarray, "chain draw classifier"]:
        """The same with what workers add: those who are known, or as crowds are assumed to differ.

        Their covariance is added to the draws as noise.
        """
        if not self.allows_for_crowds:
            return self.adjusted_draws
        directions = self._leading_directions
        values, vectors = np.linalg.eigh(self._over_crowds(directions))
        root = vectors * np.sqrt(np.clip(values, 0, None))
        size = (*self.adjusted_draws.shape[:2], root.shape[1])
        noise = np.random.default_rng(0).standard_normal(size)
        noise -= noise.mean(axis=(0, 1))  # no estimate moves
        return self.adjusted_draws + noise @ (directions @ root).T

    @cached_property
    def population_draws(self) -> Float[np.ndarray, "chain draw classifier"]:
        """Draws of the accuracies on the population that the reference is a sample of."""
        name = "population_reference_accuracy"
        return np.asarray(self.need("posterior", name)[name].values, dtype=float)

    @property
    def _leading_directions(self) -> Float[np.ndarray, "classifier direction"]:
        """Combinations of classifiers: all, or of very many those in which draws vary most."""
        draws = self.adjusted_draws.reshape(-1, self.adjusted_draws.shape[2])
        if draws.shape[1] <= MAX_WHOLE_CLASSIFIERS:
            return np.eye(draws.shape[1])
        few = draws[:: -(-len(draws) // MAX_WHOLE_CLASSIFIERS)]
        reference = self.statistics.accuracy("reference")
        leading = np.linalg.svd(few - few.mean(axis=0), full_matrices=False)[2][:N_DIRECTIONS]
        wanted = np.column_stack([np.ones_like(reference), reference, leading.T])
        return np.linalg.qr(wanted)[0]

    def _logit_right(self, cell: int) -> Float[np.ndarray, "chain kept classifier"]:
        """Draws of the logit of P(correct | cell)."""
        return decode_some(self._logit_codes, slice(None), cell)

    @cached_property
    def _logit_codes(self) -> Codes:
        """Their codes, of which those of a cell lie together: cells are asked for one by one."""
        codes = logit_codes(self.posterior)
        together = np.ascontiguousarray(np.moveaxis(codes.code, -1, 0))
        return codes._replace(code=np.moveaxis(together, 0, -1))

    @cached_property
    def _influences(self) -> Influences:
        """What classifiers' answers do to the adjusted accuracies."""
        group, made = self.need("posterior", "population_curve"), self.record
        kept = draws_of(self.need("log_density"), group)
        sites = [group[name].values for name in made.shared if name in group]
        flat = [site[:, kept].reshape(len(site), len(kept), -1) for site in sites]
        shared = np.concatenate(flat, axis=2).astype(float)
        return Influences.from_draws(self._kept_draws, shared, self.record.weight)

    @cached_property
    def _kept_draws(self) -> Float[np.ndarray, "chain kept classifier"]:
        """The draws of the adjusted accuracies of which there are log likelihoods."""
        return self.adjusted_draws[:, draws_of(self.need("log_density"), self.group)]

    @property
    def knows_workers(self) -> bool:
        """Whether the intervals allow for workers who answered many images each."""
        if not isinstance(self.study, Study):
            return False
        return any(self.study.datasets[role].answers for role in self.record.roles)

    @property
    def allows_for_crowds(self) -> bool:
        """Whether the intervals allow for crowds that differ: known workers, or an assumption."""
        return self.knows_workers or self.crowd_sd > 0

    @property
    def _nameless(self) -> list[str]:
        """Roles of the data sets of which it is not known who answered."""
        datasets = self.images.datasets
        return [role for role in self.record.roles if datasets[role].answers is None]

    def crowd_effects(
        self, directions: Float[np.ndarray, "classifier direction"]
    ) -> Float[np.ndarray, "dataset direction"]:
        """What a mean selection frequency that is higher by one would do: of unknown crowds.

        Parameters
        ----------
        directions
            Combinations of classifiers.
        """
        from bayesrep.posterior.workers import crowd_effect

        nameless = (self._answered_images(role) for role in self._nameless)
        effects = [crowd_effect(each, self._influences, directions) for each in nameless]
        return np.reshape(effects, (-1, directions.shape[1]))

    def _over_crowds(
        self, directions: Float[np.ndarray, "classifier direction"]
    ) -> Float[np.ndarray, "direction direction"]:
        """Covariance over the workers who are known, and over crowds of whom it is assumed."""
        from bayesrep.posterior.workers import worker_covariance

        known = [role for role in self.record.roles if role not in self._nameless]
        total = np.zeros((directions.shape[1], directions.shape[1]))
        if known:
            if self.record.model.crowd is None:
                datasets = [self._answered_images(role) for role in known]
                total += worker_covariance(datasets, self._influences, directions).covariance
            else:
                total += self._over_leniencies(self.record.model.crowd, directions)
        if self.crowd_sd:
            effects = self.crowd_sd * self.crowd_effects(directions)
            total += effects.T @ effects
        return total

    def _over_leniencies(
        self,
        crowd: "Callable[[Study, Sequence[str]], Crowd]",
        directions: Float[np.ndarray, "classifier direction"],
    ) -> Float[np.ndarray, "direction direction"]:
        """Covariance over the leniencies that a model was given."""
        from bayesrep.posterior.workers import leniency_covariance

        met = crowd(self.images, self.record.roles)
        if not len(met.leniencies.known):
            return np.zeros((directions.shape[1], directions.shape[1]))
        scores = self.need("posterior", "leniency_score")["leniency_score"].values
        size = len(met.leniencies.known)
        if scores.ndim != 3 or scores.shape[2] != size or not np.isfinite(scores).all():
            raise PosteriorError("posterior-of-other-workers")
        return leniency_covariance(scores, met, self.adjusted_draws, directions)

    def _answered_images(self, role: str) -> "AnsweredImages":
        """A data set with what the posterior says of its images."""
        from bayesrep.posterior.workers import AnsweredImages  # sparse matrices take long to import

        density = self.need("log_density", f"{role}_images")
        return AnsweredImages(
            self.images.datasets[role],
            cells_along(density, role),
            self.cell_of_images(role),
            self._log_mass(role),
            self._logit_right if role == "replication" else None,
        )

    def _log_mass(self, role: str) -> Float[np.ndarray, "chain kept cell"]:
        """Draws of log P(k | n), for one image of each cell of a data set."""
        name = f"{role}_images"
        images = self.need("observed_data", name)[name].values
        return self.need("log_density", name)[name].values / np.maximum(images, 1)
