"""A study: counts of several data sets and classifiers' correctness, checked by `validation`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, Violation, listing
from bayesrep.files.digests import digest_parts
from bayesrep.studies import validation
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.input_arrays import align_rows, frame_columns, order_columns
from bayesrep.studies.leniency import Annotators, add_people, people_of, people_violations
from bayesrep.studies.manifest import JSON, Manifest, Truth, selections_of
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.representation import Compared, brief, html_table, number, spread
from bayesrep.studies.selection import Selection, truncating

if TYPE_CHECKING:
    import polars as pl

    from bayesrep.studies.attempts import Attempts  # needs polars, which a study does not

_DATASET_ENTRIES = {
    *("selected", "shown", "correct", "name", "images", "labels", "groups", "answers"),
    "selection",
}


@dataclass(frozen=True, eq=False)
class Study(Compared):
    """Annotated data sets keyed by role, and the classifiers evaluated on all of them.

    Attributes
    ----------
    datasets : mapping of role to AnnotatedSet
        "reference" and "replication", and optionally more, such as "candidates" (which alone may
        have no predictions).
    classifiers : tuple of C str
        Names of the columns of every data set's `correct`.
    name
        A name for messages and reports.
    provenance
        Where the data came from; anything JSON can hold.
    truth
        Known truth, for simulated studies.

    Raises
    ------
    StudyError
        Naming the first rule broken (see `bayesrep.studies.validation`).
    """

    datasets: Mapping[str, AnnotatedSet]
    classifiers: tuple[str, ...]
    name: str = "study"
    provenance: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    truth: Truth | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", dict(self.datasets))
        object.__setattr__(self, "classifiers", tuple(str(name) for name in self.classifiers))
        object.__setattr__(self, "provenance", dict(self.provenance))
        validation.raise_first(self._violations())

    def __repr__(self) -> str:
        sizes = (
            f"{role} {data.name!r} ({number(len(data.images), 'image')})"
            for role, data in self.datasets.items()
        )
        return brief(self, f"{self.name!r}", number(len(self.classifiers), "classifier"), *sizes)

    def _repr_html_(self) -> str:
        header = ("role", "data set", "images", "annotators each")
        header += ("selected (%)", "mean accuracy (%)")
        rows = [
            (
                role,
                data.name,
                f"{len(data.images):,}",
                spread(data.shown),
                f"{100 * (data.selected / data.shown).mean():.2f}",
                f"{100 * data.correct.mean():.2f}" if data.correct.size else "-",
            )
            for role, data in self.datasets.items()
        ]
        left_out = (
            f"{number(len(images), 'image')} of {name} left out, which could not be decoded."
            for name, images in self.left_out.items()
        )
        caption = f"{self.name}: {number(len(self.classifiers), 'classifier')}"
        return html_table(caption, header, rows, *left_out)

    def _violations(self) -> Iterator[Violation]:
        where = f"study {self.name!r}"
        named = [(role, data.name) for role, data in self.datasets.items()]
        yield from validation.role_violations(where, named)
        yield from validation.classifier_violations(where, self.classifiers)
        for role, data in self.datasets.items():
            columns, classifiers = data.correct.shape[1], len(self.classifiers)
            if columns != classifiers and not (role == "candidates" and columns == 0):
                facts = {"column_count": columns, "classifier_count": classifiers}
                rule = "predictions-not-per-classifier"
                yield Violation(rule, where=where, dataset=data.name, **facts)
        one, other = self.reference, self.replication
        if one.labels is not None and other.labels is not None:
            yield from validation.label_set_violations(
                where, (one.name, one.labels), (other.name, other.labels)
            )
        if self.truth is not None:
            for name in ("adjusted_accuracy", "reference_accuracy", "replication_accuracy"):
                shape, count = np.shape(getattr(self.truth, name)), len(self.classifiers)
                if shape != (count,):
                    facts = {"quantity": name, "shape": list(shape), "classifier_count": count}
                    yield Violation("truth-shape-wrong", where=where, **facts)
        yield from people_violations(where, self.provenance, (one.shown, other.shown))
        try:
            json.dumps(self.provenance, allow_nan=False)
        except (TypeError, ValueError) as error:
            yield Violation("provenance-not-json", where=where, reason=error)

    @property
    def reference(self) -> AnnotatedSet:
        """The data set whose selection frequencies are the target."""
        return self.datasets["reference"]

    @property
    def replication(self) -> AnnotatedSet:
        """The data set whose accuracies are adjusted."""
        return self.datasets["replication"]

    @property
    def people(self) -> Annotators:
        """Who answered: the "same" people about both data sets, how many about each, or None."""
        return people_of(self.provenance)

    @classmethod
    def from_arrays(
        cls,
        *,
        reference: Mapping[str, Any],
        replication: Mapping[str, Any],
        classifiers: Sequence[str],
        candidates: Mapping[str, Any] | None = None,
        further: Mapping[str, Mapping[str, Any]] | None = None,
        name: str = "study",
        people: Annotators = None,
        provenance: Mapping[str, JSON] | None = None,
        truth: Truth | None = None,
    ) -> Self:
        """Build a study from arrays.

        Parameters
        ----------
        reference, replication
            Each a mapping with `selected` and `shown` (int, or int [N]), `correct`
            (bool [N, C]), and optionally `name`, `images` (str [N]), `labels` (str [N]),
            `groups` (mapping of str to str [N]), `answers` (`bayesrep.WorkerAnswers`, the
            single answers that were counted) and `selection` (the rule by which these very counts
            kept the images: "all of 6", "at least 3 of 5", rows of selected, shown and
            probability; see `bayesrep.studies.selection`). Whole floats count as integers; 0 and
            1 as correctness.
        classifiers
            C distinct names, by which columns of frames are found; others are in their order.
        candidates
            The pool that the replication was chosen from, likewise; `correct` may be left out.
        further
            Other data sets, likewise, by the roles that they are to have.
        people
            Who answered: "same" if the same people answered about both data sets, mixed, or how
            many answered about each (the fewer, where these differ); None where it is not known.
        name, provenance, truth
            As the attributes of `Study`.

        Raises
        ------
        StudyError
            Naming the data set, the images or classifiers, the rule broken and what to do.

        Examples
        --------
        >>> import numpy as np
        >>> study = Study.from_arrays(
        ...     reference=dict(selected=[3, 4], shown=4, correct=np.array([[False], [True]])),
        ...     replication=dict(selected=[2, 4], shown=4, correct=np.array([[False], [True]])),
        ...     classifiers=["resnet18"],
        ... )
        >>> study.replication.images.tolist()
        ['0', '1']
        """
        if isinstance(classifiers, str):
            raise StudyError("classifiers-given-as-text", classifiers=classifiers)
        names = tuple(str(classifier) for classifier in classifiers)
        validation.raise_first(validation.classifier_violations(f"study {name!r}", names))
        entries = {"reference": reference, "replication": replication}
        if candidates is not None:
            size = np.size(candidates.get("selected", ()))
            entries["candidates"] = {"correct": np.zeros((size, 0), dtype=bool), **candidates}
        if repeated := sorted(set(further or ()) & {*entries, "candidates"}):
            raise StudyError("further-role-already-known", role=repeated[0])
        entries |= further or {}
        return cls(
            datasets={
                role: _annotated_set(role, arrays, names) for role, arrays in entries.items()
            },
            classifiers=names,
            name=name,
            provenance=add_people(provenance or {}, people),
            truth=truth,
        )

    def describe(self) -> "pl.DataFrame":
        """Summarize the study's data sets.

        Returns
        -------
        polars.DataFrame
            One row a data set: role, dataset, images, left_out (images that could not be decoded),
            fewest_annotators and most_annotators of an image, mean_selection_frequency and
            mean_accuracy (over images and classifiers; null without predictions).
        """
        from bayesrep.studies.frames import describe_datasets  # needs polars, as no study does

        return describe_datasets(self.datasets)

    @property
    def accuracies(self) -> "pl.DataFrame":
        """Measured accuracies: classifier, and ROLE_accuracy of every data set with predictions."""
        from bayesrep.studies.frames import tabulate_accuracies

        return tabulate_accuracies(self.datasets, self.classifiers)

    @property
    def counts(self) -> "pl.DataFrame":
        """The counts of all data sets: dataset, image, selected, shown."""
        from bayesrep.studies.frames import tabulate_counts

        return tabulate_counts(self.datasets.values())

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """The images, by data set, that the study is left without, and why."""
        return {data.name: dict(data.left_out) for data in self.datasets.values() if data.left_out}

    def fingerprint(self) -> str:
        """The SHA-256, in hexadecimal, of the data and their order.

        Roles, names, images, counts, correctness, labels, groups, classifiers and the rules by
        which counts selected images are digested. The study's own name, its provenance and truth,
        the images left out and the workers' names are not, since no fit depends on them. Every fit
        of the study records it, and nothing that looks at images takes another study's fit.
        """
        # The length keeps neighbouring parts from running into each other.
        return digest_parts(b"%d:%b" % (len(part), part) for part in self._contents())

    def _contents(self) -> Iterator[bytes]:
        yield _text_bytes(self.classifiers)
        for role, data in sorted(self.datasets.items()):
            yield _text_bytes([role, data.name])
            yield _text_bytes(data.images.tolist())
            yield data.selected.astype("<i8").tobytes()
            yield data.shown.astype("<i8").tobytes()
            yield np.packbits(data.correct).tobytes()
            yield _text_bytes(None if data.labels is None else data.labels.tolist())
            for group, values in sorted(data.groups.items()):
                yield _text_bytes([group, *values.tolist()])
            if (rule := truncating(data.selection)) is not None:
                yield json.dumps(["selection", rule.content()]).encode()

    def write(
        self,
        path: str | Path,
        *,
        force: bool = False,
        answers: Sequence[Predictions] = (),
        attempts: "Sequence[Attempts]" = (),
    ) -> None:
        """Write the study as a folder of Parquet files, whole or not at all.

        Parameters
        ----------
        path
            The folder to create; its parents are created too.
        force
            Replace a study (or an empty folder) that is already there, once the new one is
            complete.
        answers
            Classifiers' answers, for data sets where they are known; those to images
            that the study lacks are left out.
        attempts
            Counts of right attempts by classifiers that were asked several times.

        Raises
        ------
        StudyError
            Where the path exists and `force` is not given, or is something else than a study, or
            cannot be written; where answers are missing or contradict the study.
        """
        from bayesrep.studies.writing import write_folder  # needs polars, which a study does not

        roles = {role: data.name for role, data in self.datasets.items()}
        datasets = list(self.datasets.values())
        facts = self.name, roles, self.classifiers, self.provenance, self.truth
        manifest = Manifest(*facts, selections_of(datasets))
        write_folder(path, manifest, datasets, answers, attempts, force=force)


def need_study(study: object) -> Study:
    """Return the argument if it is a study, and refuse it otherwise."""
    if isinstance(study, Study):
        return study
    if isinstance(study, str | Path):
        raise StudyError("path-instead-of-study", path=str(study))
    raise StudyError("object-not-a-study", type_name=type(study).__name__)


def _annotated_set(
    role: str, arrays: Mapping[str, Any], classifiers: tuple[str, ...]
) -> AnnotatedSet:
    """Fill in the defaults of one mapping given to `Study.from_arrays`, and check it."""
    validation.raise_first(_entry_violations(role, arrays))
    name = str(arrays.get("name") or role)
    where = f"data set {name!r}"
    groups: Any = {} if arrays.get("groups") is None else arrays["groups"]
    grouped = {f"group {each!r}": groups[each] for each in getattr(groups, "columns", groups)}
    by_image = ("images", "selected", "shown", "correct", "labels")
    framed = {"correct": frame_columns(arrays["correct"], where)}
    rows = align_rows({**{each: arrays.get(each) for each in by_image}, **framed, **grouped}, where)
    own, correct = rows["images"], rows["correct"]
    size = len(own) if own is not None else (np.shape(correct) or (0,))[0]
    images = np.arange(size).astype(np.str_) if own is None else np.asarray(own, dtype=np.str_)
    validation.raise_first(validation.image_violations(where, images))
    named = () if role == "candidates" and np.shape(correct)[1:] == (0,) else classifiers
    correct = order_columns(correct, named, where)
    validation.raise_first(validation.correct_violations(where, images, correct, named))
    try:
        selection = None if (rule := arrays.get("selection")) is None else Selection.parse(rule)
    except StudyError as error:
        raise error.add_place(where) from None
    return AnnotatedSet(
        name=name,
        images=images,
        selected=_one_per_image(rows["selected"], size),
        shown=_one_per_image(rows["shown"], size),
        correct=correct,
        labels=rows["labels"],
        groups={str(each): rows[f"group {each!r}"] for each in getattr(groups, "columns", groups)},
        answers=arrays.get("answers"),
        selection=selection,
    )


def _entry_violations(role: str, arrays: Mapping[str, Any]) -> Iterator[Violation]:
    if unknown := sorted(set(arrays) - _DATASET_ENTRIES):
        known, told = ", ".join(sorted(_DATASET_ENTRIES)), listing(unknown, "entry")
        yield Violation("unknown-data-set-entry", role=role, entries=told, known_entries=known)
    for entry in ("selected", "shown", "correct"):
        if arrays.get(entry) is None:
            yield Violation("data-set-entry-missing", role=role, entry=entry)


def _one_per_image(counts: Any, size: int) -> Any:
    """Repeat a scalar count for every image; leave anything else for the rules to judge."""
    numbers = validation.as_numbers(counts)
    return np.full(size, numbers) if numbers is not None and numbers.ndim == 0 else counts


def shared_classes(study: Study) -> dict[str, NDArray[np.str_]]:
    """List labels and groups that both data sets have, by column, the reference's images first."""
    one, other = study.reference, study.replication
    columns = (
        {} if one.labels is None or other.labels is None else {"label": (one.labels, other.labels)}
    )
    columns |= {
        name: (one.groups[name], other.groups[name]) for name in one.groups if name in other.groups
    }
    return {name: np.concatenate(pair) for name, pair in columns.items()}


def _text_bytes(texts: Sequence[str] | None) -> bytes:
    return json.dumps(texts).encode()
