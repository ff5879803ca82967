"""`bayesrep run`: tables in, report out: every step in one folder, none made twice."""

import inspect
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any

import bayesrep
from bayesrep import process
from bayesrep.choices import FEW_REPLICATES, find_strategy
from bayesrep.commands.options import (
    TABLE_OPTIONS,
    add_roles,
    add_shared,
    given_options,
    import_in_thread,
    keep_compiled,
    read_draws,
)
from bayesrep.commands.output import (
    DONE_STATUS,
    describe_kept_work,
    emit,
    finding,
    progress_line,
    say,
)
from bayesrep.errors import BayesrepError, EstimateWarning, OptionError, plain_text, reason
from bayesrep.files.digests import digest_file, digest_value, find_broken, seal_files
from bayesrep.files.given_files import split_name
from bayesrep.store import write_json

EXAMPLE = "counts.csv predictions.csv --reference v1 --replication v2 --out my-folder"

RUN_RECORD = "run.json"
RUN_FIGURES = ("answer", "accuracies", "frequencies", "curves")
STAGE_FILES: Mapping[str, str] = {
    "study": "study",
    "posterior": "posterior.nc",
    "tables": "tables",
    "figures": "figures",
    "report": "report.html",
}
"""Stages in order, with the names that each makes in the folder."""
MADE_NAMES = (*STAGE_FILES.values(), "checkpoint", RUN_RECORD)
"""Names in the folder that are ours, and are removed where all is to be made anew."""
LATER_MODULES = ("numpyro", "scipy.stats", "xarray")  # slow to import


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="tables of counts (or annotations), of predictions and, if there are any, of images; "
        "NAME=FILE: all rows are of that data set; with --counts: logs of evaluations or folders "
        "of them, as `import evals` reads them",
    )
    option(
        "--counts",
        type=Path,
        metavar="TABLE",
        help="with logs: counts of their items, a table of dataset, item, selected, shown",
    )
    add_roles(parser)
    option("--out", type=Path, required=True, metavar="FOLDER", help="folder for all results")
    add_shared(parser, "--method")


def run(arguments: Namespace) -> int:
    record = _begin_record(arguments, _describe_request(arguments))
    is_begun = bool(record["seconds"])
    changed = _examine(arguments.out, record)
    if len(record["seconds"]) == len(STAGE_FILES):
        state = "" if changed else f"{arguments.out} is up to date; "
        say(f"{state}nothing was made again")
        return _print_answer(arguments, record)
    keep_compiled()
    work = _Work(arguments, record, watch=not arguments.quiet)
    try:
        with warnings.catch_warnings():  # of estimates: the report says in its own words
            warnings.simplefilter("ignore", EstimateWarning)
            for number, (name, make) in enumerate(work.stages.items(), 1):
                work.stage(number, name, make)
    finally:
        # Of a first stage that failed nothing is left that would block the corrected command.
        if not is_begun and not record["seconds"]:
            _remove(arguments.out)
            with suppress(OSError):
                arguments.out.rmdir()
    return _print_answer(arguments, record)


def describe_kept(arguments: Namespace) -> str:
    return describe_kept_work(arguments.out)


def _describe_request(arguments: Namespace) -> dict[str, Any]:
    """Identify a request: everything it makes depends on the tables' contents and the options."""
    names, counts = (*TABLE_OPTIONS, "method", "seed"), arguments.counts
    options = {name: getattr(arguments, name, None) for name in names}
    options["counts"] = counts and str(counts.resolve())
    contents: dict[str, str] = {}
    for given in (*arguments.files, *filter(None, [counts])):
        name, file = split_name(given)
        if counts is None and (file.is_dir() or file.suffix in (".jsonl", ".json", ".eval")):
            raise OptionError("run-of-no-table", path=file)
        if arguments.out.resolve().is_relative_to(file.resolve()):
            raise OptionError("output-is-input", path=arguments.out)
        place = f"{name}={file.resolve()}" if name else str(file.resolve())
        try:
            inside = seal_files(file, "") if file.is_dir() else {"": digest_file(file)}
        except OSError as error:
            raise OptionError("input-file-unreadable", file=file, reason=reason(error)) from error
        contents |= {str(Path(place, path)): digest for path, digest in inside.items()}
    return {"contents": contents, "options": options, "version": bayesrep.__version__}


def _begin_record(arguments: Namespace, settings: Mapping[str, Any]) -> dict[str, Any]:
    out, new = arguments.out, {"asked": settings, "seconds": {}, "seals": {}}
    if out.exists() and not (out / RUN_RECORD).is_file():
        if not out.is_dir() or any(out.iterdir()):
            raise OptionError("out-not-earlier-run", out=out)
    # A record of the same request is resumed; any difference has to be confirmed by --force.
    elif out.exists():
        old = _read_record(out)
        differs = [f"{RUN_RECORD} is not as run left it"]
        if old is not None:
            if not old["seconds"]:  # killed in the first stage
                old["asked"] = settings
            differs = _differences(old["asked"], settings)
            if not differs and not arguments.force:
                return old
        if not arguments.force:
            raise OptionError("run-of-other-inputs", out=out, differences="; ".join(differs))
        say("; ".join([*differs, f"everything in {out} is made anew"]))
        _remove(out)
    out.mkdir(parents=True, exist_ok=True)
    _write_record(out, new)
    return new


def _read_record(out: Path) -> dict[str, Any] | None:
    """The record of an earlier run; None unless it is as `_write_record` left it."""
    from bayesrep.files import strict_json

    with suppress(BayesrepError):
        record: Any = strict_json.read(out / RUN_RECORD)
        if isinstance(record, dict) and record.pop("seal", None) == digest_value(record):
            return record
    return None


def _write_record(out: Path, record: Mapping[str, Any]) -> None:
    """Write what was asked, done and found, with a digest by which a changed record is told."""
    write_json(out / RUN_RECORD, {**record, "seal": digest_value(record)})


def _examine(out: Path, record: dict[str, Any]) -> bool:
    """Check whether a file is as it was made; forget lost ones, so that they are made again."""
    broken = {name: find_broken(out, sealed) for name, sealed in record["seals"].items()}
    # A stage that lost a file is made again, and so is everything computed from it.
    again = next((n for n in STAGE_FILES if n not in broken or broken[n].lost), None)
    late = () if again is None else [*STAGE_FILES][[*STAGE_FILES].index(again) :]
    for name in late:
        record["seconds"].pop(name, None)
        record["seals"].pop(name, None)
    for name, each in broken.items():
        note = "is made anew" if name in late else "is left as it is (--force makes all anew)"
        for file in each.changed:
            say(f"{out / file} has changed since it was made, and {note}")
    return any(each.changed for each in broken.values())


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    if old["version"] != new["version"]:
        return [f"it is of version {old['version']}, and this is {new['version']}"]
    before, now = old["contents"], new["contents"]
    differences = [
        f"{Path(name).name} {'has changed' if name in before else 'is new'}"
        for name in now
        if before.get(name) != now[name]
    ]
    differences += [f"{Path(name).name} is left out" for name in before if name not in now]
    for name, value in new["options"].items():
        if (was := old["options"].get(name)) != value:
            differences.append(f"--{name} was {_show_option(was)} and is {_show_option(value)}")
    return differences


def _show_option(value: Any) -> str:
    return "not given" if value is None else str(value)


def _remove(out: Path) -> None:
    import shutil

    for name in MADE_NAMES:
        path = out / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class _Work:
    """The stages, and what one of them hands to the next where both are made now."""

    def __init__(self, arguments: Namespace, record: dict[str, Any], *, watch: bool) -> None:
        self.arguments, self.record, self.watch = arguments, record, watch
        self.out: Path = arguments.out
        self.stages: Mapping[str, Callable[[], None]] = {
            "reading the tables": self.read,
            "fitting": self.fit,
            "point estimates and tables": self.tabulate,
            "figures": self.draw,
            "report": self.report,
        }

    def stage(self, number: int, text: str, make: Callable[[], None]) -> None:
        name, seconds = [*STAGE_FILES][number - 1], self.record["seconds"]
        if name in seconds:
            self.say(f"[{number}/{len(STAGE_FILES)}] {text}: done before")
            return
        self.say(f"[{number}/{len(STAGE_FILES)}] {text} ...")
        # The record is written only after the stage: an interrupt repeats the whole stage.
        begin = time.monotonic()
        make()
        seconds[name] = round(time.monotonic() - begin, 1)
        self.record["seals"][name] = seal_files(self.out, STAGE_FILES[name])
        _write_record(self.out, self.record)
        self.say(f"[{number}/{len(STAGE_FILES)}] {text}: {seconds[name]:.1f} s")

    def say(self, text: str) -> None:
        if self.watch:
            progress_line(text)

    def read(self) -> None:
        from bayesrep.commands.import_ import reader_options
        from bayesrep.sources.importing import import_files

        given = self.arguments
        source = "tables" if given.counts is None else "evals"
        # Slow imports of later stages overlap with reading the files.
        with import_in_thread(*LATER_MODULES):
            imported = import_files(
                source,
                given.files,
                self.out / "study",
                force=True,
                name=self.out.resolve().name,
                people=given.people,
                progress=self.watch,
                **reader_options(source, given),
            )
        for note in imported.notes:
            self.say(f"Note: {note}")
        if imported.lacks("predictions"):
            raise OptionError("tables-without-predictions")
        self.study = imported.study()

    @cached_property
    def study(self) -> bayesrep.Study:
        return bayesrep.read_study(self.out / "study")

    def fit(self) -> None:
        study = self.study
        _ = self.point_estimates  # half of the time of both is compilation by one thread
        self.posterior = self._fit_posterior(study)
        bayesrep.write_posterior(self.posterior, self.out / "posterior.nc", force=True)

    def _fit_posterior(self, study: bayesrep.Study) -> Any:
        fit = inspect.unwrap(bayesrep.fit)  # what is only written needs no ArviZ
        options: dict[str, Any] = {**given_options(self.arguments, fit), "progress": self.watch}
        if "checkpoint" in find_strategy(self.arguments.method or "auto").arguments:
            options["checkpoint"] = self.out / "checkpoint"
        return fit(study, **options)

    @cached_property
    def posterior(self) -> Any:
        return read_draws(self.out / "posterior.nc")

    @cached_property
    def points(self) -> Any:
        return self.point_estimates.result()

    @cached_property
    def point_estimates(self) -> "Future[Any]":
        """The point estimates in the making, in a thread that no end of the process waits for."""
        from bayesrep.estimators import METHODS, analyse

        # A daemon thread, not an executor: the interpreter would wait for an executor at its end.
        future: Future[Any] = Future()
        study, seed = self.study, self.arguments.seed or 0

        def work() -> None:
            try:
                future.set_result(analyse(study, METHODS, bootstrap=FEW_REPLICATES, seed=seed))
            except BaseException as error:
                future.set_exception(error)

        Thread(target=work, daemon=True).start()
        return future

    def tabulate(self) -> None:
        from bayesrep.atomic import replaced_folder
        from bayesrep.checks.diagnosis import examine
        from bayesrep.estimators import classifier_table, gap_table, matching_sentences
        from bayesrep.posterior.fitted import Fitted
        from bayesrep.report.conclusion import drop_sentence
        from bayesrep.summary.tables import accuracies

        tables = {
            "estimates": classifier_table(self.points),
            "estimated-gaps": gap_table(self.points),
        }
        answer: dict[str, Any] = {"answer": "", "trust": "", "converged": True}
        fitted = Fitted(self.study, self.posterior)
        try:
            gaps = bayesrep.summarize_gaps(self.study, self.posterior)
            tables |= {
                "adjusted": accuracies(fitted),
                "gaps": gaps,
                "ranks": bayesrep.rank_classifiers(self.study, self.posterior),
                "pairs": bayesrep.compare_classifiers(self.study, self.posterior),
            }
            answer["answer"] = drop_sentence(self.study, gaps)
        except bayesrep.ConvergenceError as error:
            answer |= {"answer": f"No answer: {reason(error)}", "converged": False}
        # The check of agreement between classifiers takes longest; `diagnose` makes it on request.
        diagnosis = examine(self.posterior, fitted, with_agreement=False)
        answer["trust"] = diagnosis.trust
        answer["verdict"] = diagnosis.verdict
        answer["sentences"] = list(diagnosis.sentences)
        answer["assumption"] = diagnosis.assumption
        answer["matching"] = matching_sentences(self.points)
        for name in ("components_choice", "tried"):
            answer[name] = fitted.group.attrs[name]
        with replaced_folder(self.out.resolve() / "tables") as folder:
            for name, table in tables.items():
                table.write_csv(folder / f"{name}.csv")
        self.record["found"] = answer

    def draw(self) -> None:
        from bayesrep.atomic import replaced_folder
        from bayesrep.errors import Violation
        from bayesrep.report.figure import has_pictures, save_picture
        from bayesrep.report.figure_registry import chosen_options, find_figure

        figures = RUN_FIGURES if self.record["found"]["converged"] else ()
        if figures and not has_pictures():
            say(f"no figures: {Violation('pictures-not-installed')}")
            figures = ()
        with replaced_folder(self.out.resolve() / "figures") as folder:
            for name in figures:
                draw_options = {"seed": self.arguments.seed, "points": self.points}
                drawn = find_figure(name)
                options = chosen_options(name, drawn, requested={}, defaults=draw_options)
                try:
                    figure = drawn.draw(self.study, self.posterior, **options)
                except BayesrepError as error:
                    say(f"figure {name}: {reason(error)}")
                    continue
                for suffix in (".pdf", ".png"):
                    save_picture(figure, folder / f"{name}{suffix}")

    def report(self) -> None:
        from bayesrep.report.page import write_page
        from bayesrep.report.sections import gather

        content = gather(self.study, self.posterior, points=self.points)
        write_page(content, self.out / "report.html")


def _print_answer(arguments: Namespace, record: Mapping[str, Any]) -> int:
    from bayesrep.report.figure import has_pictures
    from bayesrep.report.fits_text import remedies

    out, answer = arguments.out, record["found"]
    study, posterior = out / STAGE_FILES["study"], out / STAGE_FILES["posterior"]
    sentences: Sequence[str] = answer["sentences"]
    drawn = [f"{out}/figures/     {', '.join(RUN_FIGURES)} as PDF and PNG"]
    entries = (
        [
            f"{out}/tables/      adjusted accuracies, gaps, ranks and pairs as CSV",
            *(drawn if has_pictures() else ()),
        ]
        if answer["converged"]
        else [f"{out}/tables/      point estimates as CSV"]
    )
    # After a failed fit the useful next command is the diagnosis, not a table.
    following = (
        process.command("summarize", study, posterior, "--table", "pairs")
        if answer["converged"]
        else process.command("diagnose", posterior, "--study", study)
    )
    lines = [
        plain_text(answer["answer"]),
        plain_text(answer["verdict"]),
        *(f"- {plain_text(sentence)}" for sentence in sentences),
        *remedies(sentences, str(study), str(posterior)),
        *filter(None, [answer["components_choice"], answer["tried"]]),
        *map(plain_text, answer["matching"]),
        "",
        f"{out}/report.html  everything on one page; open it in a browser",
        *entries,
        f"{study}, {posterior}  for any other command, such as",
        f"  {following}",
    ]
    emit(arguments, "\n".join(lines), {**answer, "out": str(out), "seconds": record["seconds"]})
    if answer["converged"] and answer["trust"] != "no":
        return DONE_STATUS
    return finding("do not use these adjusted accuracies")
