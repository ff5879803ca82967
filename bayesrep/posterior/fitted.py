"""A posterior and the study that it was fitted to: what every later room takes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from bayesrep.errors import ConvergenceError, PosteriorError, StudyError
from bayesrep.posterior.groups import (
    Posterior,
    Recorded,
    cells_along,
    draws_of,
    need_group,
    place_of_cells,
    recorded,
)
from bayesrep.posterior.joint_draws import (
    MOST_WHOLE,
    JointDraws,
    excess_covariance,
    leading_excess,
    moved,
    moved_along,
    reference_draws,
)
from bayesrep.posterior.workers import Answered, worker_covariance
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.types import Float, Int


@dataclass(frozen=True, eq=False)
class Fitted:
    """A study and a posterior of it; what is worked out of the two is kept.

    Parameters
    ----------
    study
        The study, or its sufficient statistics where nothing is asked of single images.
    posterior
        From `bayesrep.fit` or `bayesrep.read_posterior`.

    Raises
    ------
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

    def __post_init__(self) -> None:
        attributes = self.group.attrs
        if "statistics_digest" not in attributes:
            raise PosteriorError(
                "the posterior does not say to which counts it was fitted; fit the study again "
                "with this version"
            )
        if attributes["statistics_digest"] != self.statistics.digest():
            raise PosteriorError(
                "the posterior was fitted to another study (fingerprints differ); fit this one"
            )
        fitted = attributes.get("study_fingerprint")
        if isinstance(self.study, Study) and fitted and fitted != self.study.fingerprint():
            raise PosteriorError(
                "the posterior was fitted to another study (fingerprints differ: the counts are "
                "equal, but not the images, their order, labels, groups or answers); fit this one"
            )

    @cached_property
    def statistics(self) -> SufficientStatistics:
        """The study's sufficient statistics."""
        return SufficientStatistics.of(self.study)

    @cached_property
    def group(self) -> xr.Dataset:
        """The draws: the group "posterior"."""
        return self.need("posterior", "adjusted_accuracy")

    @cached_property
    def recorded(self) -> Recorded:
        """How the posterior was made."""
        return recorded(self.posterior)

    def need(self, name: str, *variables: str) -> xr.Dataset:
        """A group that must be there with some variables; `PosteriorError` where it is not."""
        return need_group(self.posterior, name, *variables)

    def trusted(self, *, allow_unconverged: bool = False) -> "Fitted":
        """Itself, where it converged or need not have; else `ConvergenceError` with the verdict."""
        if not self.group.attrs.get("converged") and not allow_unconverged:
            verdict = self.group.attrs.get("verdict", "the fit carries no verdict")
            raise ConvergenceError(str(verdict))
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
            raise StudyError("this takes the study itself, not its sufficient statistics")
        return self.study

    @cached_property
    def adjusted(self) -> Float[np.ndarray, "chain draw classifier"]:
        """Draws of the adjusted accuracies, right for one classifier at a time."""
        return np.asarray(self.group["adjusted_accuracy"].values, dtype=float)

    def cell_of_images(self, role: str) -> Int[np.ndarray, "image"]:
        """Index of every image of a data set among the posterior's cells of it."""
        data, column = self.images.datasets[role], self.recorded.grouping
        if column and column not in data.groups:
            raise PosteriorError(
                f"the posterior has groups by {column[:50]!r}, which the study lacks"
            )
        group = data.groups[column] if column else np.full(len(data.shown), "")
        cells = cells_along(self.need("log_likelihood"), role)
        return place_of_cells(cells, group, data.selected, data.shown)

    @cached_property
    def together(self) -> Float[np.ndarray, "chain draw classifier"]:
        """Joint draws of the adjusted accuracies: those of a collapsed model are moved.

        Where it is known who answered, they know that workers answered many images; `adjusted`
        does not.
        """
        return self._moved(workers=True) if self.knows_workers else self.together_without_workers

    @cached_property
    def together_without_workers(self) -> Float[np.ndarray, "chain draw classifier"]:
        """Joint draws that take every answer for another worker's."""
        return self._moved(workers=False) if self.recorded.model.collapsed else self.adjusted

    def _moved(self, *, workers: bool) -> Float[np.ndarray, "chain draw classifier"]:
        """Draws of a collapsed model, moved."""
        directions, excess = self._excess
        crowd = self._over_workers(directions) if workers else None
        if len(directions) <= MOST_WHOLE:
            return moved(self.adjusted, excess, crowd)
        return moved_along(self.adjusted, directions, excess, crowd)

    @cached_property
    def _excess(
        self,
    ) -> tuple[Float[np.ndarray, "classifier direction"], Float[np.ndarray, "direction direction"]]:
        """What shared images add to a collapsed model's covariance, and in which directions."""
        log_right = self.need("log_likelihood", "log_right")["log_right"].values
        among = (
            self._kept,
            log_right,
            self.cell_of_images("replication"),
            self.images.replication.correct,
        )
        classifiers = self.adjusted.shape[2]
        if classifiers <= MOST_WHOLE:
            return np.eye(classifiers), excess_covariance(*among)
        reference = self.statistics.accuracy("reference")
        return leading_excess(*among, np.column_stack([np.ones_like(reference), reference]))

    @cached_property
    def _kept(self) -> Float[np.ndarray, "chain kept classifier"]:
        """The draws of the adjusted accuracies of which there are log likelihoods."""
        return self.adjusted[:, draws_of(self.need("log_likelihood"), self.group)]

    @property
    def knows_workers(self) -> bool:
        """Whether the intervals allow for workers who answered many images each."""
        if not isinstance(self.study, Study) or not self.recorded.model.collapsed:
            return False
        return any(self.study.datasets[role].answers for role in self.recorded.roles)

    def _over_workers(
        self, directions: Float[np.ndarray, "classifier direction"]
    ) -> Float[np.ndarray, "direction direction"]:
        """Covariance over the workers of the data sets of which it is known who answered."""
        likelihood = self.need("log_likelihood", "log_right")
        datasets = [
            Answered(
                data,
                cells_along(likelihood, role),
                self.cell_of_images(role),
                self._log_mass(role),
                likelihood["log_right"].values if role == "replication" else None,
            )
            for role in self.recorded.roles
            if (data := self.images.datasets[role]).answers is not None
        ]
        return worker_covariance(datasets, self._kept, directions).covariance

    def _log_mass(self, role: str) -> Float[np.ndarray, "chain kept cell"]:
        """Draws of log P(k | n), for one image of each cell of a data set."""
        name = f"{role}_images"
        images = self.need("observed_data", name)[name].values
        return self.need("log_likelihood", name)[name].values / np.maximum(images, 1)

    def joint_draws(self, seed: int = 0) -> JointDraws:
        """Draws of all classifiers' accuracies that know of the images these share.

        Parameters
        ----------
        seed
            Of the accuracies on the reference's population, where the model has none.
        """
        if "population_reference_accuracy" in self.group:
            population = self.group["population_reference_accuracy"].values
            return JointDraws(self.together, np.asarray(population, dtype=float))
        self.need("log_likelihood", "reference_images")
        reference = reference_draws(
            self._kept,
            self.together,
            self._log_mass("reference"),
            self.cell_of_images("reference"),
            self.images.reference.correct,
            seed=seed,
        )
        return JointDraws(self.together, reference)
