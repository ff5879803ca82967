"""A posterior together with its study: the input of summaries, checks and reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesrep.errors import ConvergenceError, PosteriorError, StudyError
from bayesrep.files.netcdf import Group
from bayesrep.numerics.codes import Codes
from bayesrep.numerics.settings import refuse_fork
from bayesrep.posterior.files import order_posterior
from bayesrep.posterior.groups import (
    FitRecord,
    Posterior,
    cells_along,
    draw_indices,
    need_group,
    place_of_cells,
    read_record,
    right_answers,
)
from bayesrep.posterior.influences import Influences
from bayesrep.posterior.likelihood import decode_some, logit_codes
from bayesrep.studies.representation import brief, number
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Float, Int

if TYPE_CHECKING:
    from bayesrep.models.model import Crowd
    from bayesrep.posterior.workers import AnsweredImages

MAX_WHOLE_CLASSIFIERS, N_DIRECTIONS = 1_000, 32  # beyond so many, covariances in directions


@dataclass(frozen=True, eq=False)
class Fitted:
    """A study, or its sufficient statistics alone, and a posterior of it, with cached quantities.

    A posterior of a study is one of these images, answer by answer. One fitted to sufficient
    statistics alone is one of every study that has them; and where statistics are all that is
    given, they are all that is compared.
    """

    study: Study | SufficientStatistics
    posterior: Posterior

    def __post_init__(self) -> None:
        refuse_fork()
        attributes = self.group.attrs
        if "statistics_digest" not in attributes:
            raise PosteriorError("posterior-of-unknown-counts")
        if attributes["statistics_digest"] != self.statistics.digest():
            raise PosteriorError("posterior-of-another-study", study=self._study_name)
        recorded = attributes.get("study_fingerprint")
        if isinstance(self.study, Study) and recorded and recorded != self.study.fingerprint():
            raise PosteriorError("posterior-of-other-images", study=self._study_name)
        # By name, not by place: people select and sort classifiers for their figures.
        names = {"classifier": self.statistics.classifiers, "dataset": self.record.roles}
        object.__setattr__(self, "posterior", order_posterior(self.posterior, names))
        vars(self).pop("group")  # cached in the previous order
        known = float(attributes.get("leniency_scale", 0.0))
        if known != self.statistics.leniency_scale:
            said = self.statistics.people or "nothing"
            raise PosteriorError("posterior-of-other-people", people=said)

    def __repr__(self) -> str:
        record, sizes = self.record, self.group.sizes
        return brief(
            self,
            f"{record.name} by {record.method}",
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
        """The group "posterior" with the draws."""
        return self.need("posterior", "adjusted_accuracy")

    @cached_property
    def record(self) -> FitRecord:
        """Record of the model, options and sampler of the fit."""
        return read_record(self.posterior)

    def need(self, name: str, *variables: str) -> Group:
        """Return a group with required variables; `PosteriorError` if one is missing."""
        return need_group(self.posterior, name, *variables)

    def require_convergence(self, *, allow_unconverged: bool = False) -> "Fitted":
        """Return itself if it converged or need not; else raise `ConvergenceError`."""
        # A fit without a verdict counts as not converged.
        if not self.group.attrs.get("converged") and not allow_unconverged:
            verdict = self.group.attrs.get("verdict", "the fit carries no verdict")
            raise ConvergenceError("not-converged", verdict=verdict)
        return self

    @property
    def images(self) -> Study:
        """The study with its images."""
        if not isinstance(self.study, Study):
            raise StudyError("statistics-instead-of-study")
        return self.study

    @cached_property
    def adjusted_draws(self) -> Float[np.ndarray, "chain draw classifier"]:
        """Draws of the adjusted accuracies."""
        return np.asarray(self.group["adjusted_accuracy"].values, dtype=float)

    def cell_of_images(self, role: str) -> Int[np.ndarray, "image"]:
        """Find the index of each image's cell among the posterior's cells of its data set."""
        data, column = self.images.datasets[role], self.record.grouping
        if column and column not in data.groups:
            raise PosteriorError("posterior-groups-not-in-study", column=column[:50])
        group = data.groups[column] if column else np.full(len(data.shown), "")
        cells = cells_along(self.need("log_density"), role)
        return place_of_cells(cells, group, data.selected, data.shown)

    @cached_property
    def draws_over_crowds(self) -> Float[np.ndarray, "chain draw classifier"]:
        """Draws of the adjusted accuracies with the variance over known workers added as noise."""
        if not self.knows_workers:
            return self.adjusted_draws
        directions = self._leading_directions
        # Eigendecomposition instead of Cholesky: covariances may be singular.
        values, vectors = np.linalg.eigh(self._crowd_covariance(directions))
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
        """Basis of the classifiers: the identity, or the leading directions of very many."""
        draws = self.adjusted_draws.reshape(-1, self.adjusted_draws.shape[2])
        # Full covariances of thousands of classifiers take too much time and memory.
        if draws.shape[1] <= MAX_WHOLE_CLASSIFIERS:
            return np.eye(draws.shape[1])
        subset = draws[:: -(-len(draws) // MAX_WHOLE_CLASSIFIERS)]
        reference = self.statistics.accuracy("reference")
        leading = np.linalg.svd(subset - subset.mean(axis=0), full_matrices=False)[2][:N_DIRECTIONS]
        # Means over classifiers and slopes on reference accuracy combine these two: keep both.
        spanning = np.column_stack([np.ones_like(reference), reference, leading.T])
        return np.linalg.qr(spanning)[0]

    def _log_answers(self, cell: int) -> tuple[Float[np.ndarray, "chain stored classifier"], ...]:
        """Draws of log P(wrong) and log P(right) of one more image of a cell."""
        logits = decode_some(self._logit_codes, slice(None), cell).astype(float)
        right, images = self._answered_cells
        return self.record.answers.log_answers(right[:, cell], images[[cell]], logits)

    @cached_property
    def _answered_cells(self) -> tuple[Int[np.ndarray, "classifier cell"], Int[np.ndarray, "cell"]]:
        observed = self.need("observed_data", "correct", "replication_images")
        return right_answers(observed), observed["replication_images"].values

    @cached_property
    def _logit_codes(self) -> Codes:
        """Codes of these draws, contiguous by cell, since cells are decoded one at a time."""
        codes = logit_codes(self.posterior)
        contiguous = np.ascontiguousarray(np.moveaxis(codes.code, -1, 0))
        return codes._replace(code=np.moveaxis(contiguous, 0, -1))

    @cached_property
    def _influences(self) -> Influences:
        group, record = self.need("posterior", "population_curve"), self.record
        indices = draw_indices(self.need("log_density"), group)
        sites = [group[name].values for name in record.shared if name in group]
        flat = [site[:, indices].reshape(len(site), len(indices), -1) for site in sites]
        shared = np.concatenate(flat, axis=2).astype(float)
        # The draws of the adjusted accuracies for which log likelihoods are stored.
        stored = self.adjusted_draws[:, draw_indices(self.need("log_density"), self.group)]
        return Influences.from_draws(stored, shared, self.record.weight)

    @property
    def knows_workers(self) -> bool:
        """True if the intervals allow for workers who answered many images each."""
        if not isinstance(self.study, Study):
            return False
        return any(self.study.datasets[role].answers for role in self.record.roles)

    def _crowd_covariance(
        self, directions: Float[np.ndarray, "classifier direction"]
    ) -> Float[np.ndarray, "direction direction"]:
        from bayesrep.posterior.workers import worker_covariance

        if self.record.model.crowd is not None:
            return self._leniency_covariance(self.record.model.crowd, directions)
        datasets = self.images.datasets
        identified = [role for role in self.record.roles if datasets[role].answers is not None]
        images = [self._answered_images(role) for role in identified]
        return worker_covariance(images, self._influences, directions).covariance

    def _leniency_covariance(
        self,
        crowd: "Callable[[Study, Sequence[str]], Crowd]",
        directions: Float[np.ndarray, "classifier direction"],
    ) -> Float[np.ndarray, "direction direction"]:
        from bayesrep.posterior.workers import leniency_covariance

        fitted_crowd = crowd(self.images, self.record.roles)
        if not len(fitted_crowd.leniencies.known):
            return np.zeros((directions.shape[1], directions.shape[1]))
        scores = self.need("posterior", "leniency_score")["leniency_score"].values
        size = len(fitted_crowd.leniencies.known)
        if scores.ndim != 3 or scores.shape[2] != size or not np.isfinite(scores).all():
            raise PosteriorError("posterior-of-other-workers")
        return leniency_covariance(scores, fitted_crowd, self.adjusted_draws, directions)

    def _answered_images(self, role: str) -> "AnsweredImages":
        """Join a data set with the posterior's densities of its images."""
        from bayesrep.posterior.workers import AnsweredImages  # sparse matrices take long to import

        name = f"{role}_images"
        density = self.need("log_density", name)
        # The stored density is that of all images of a cell together, and log P(k | n) of one.
        images = np.maximum(self.need("observed_data", name)[name].values, 1)
        return AnsweredImages(
            self.images.datasets[role],
            cells_along(density, role),
            self.cell_of_images(role),
            density[name].values / images,
            self._log_answers if role == "replication" else None,
        )
