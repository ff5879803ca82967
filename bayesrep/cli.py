"""The command line: parse, call, print.

Tables and JSON go to standard output, progress and warnings to standard error. Exit status 0:
done; 1: the data or the fit is bad (one line says why); 2: wrong usage; 130 or 143: interrupted by
SIGINT (Ctrl-C) or SIGTERM.
"""

import argparse
import inspect
import json
import os
import platform
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bayesrep import __version__, bounds, process
from bayesrep.atomic import user_cache
from bayesrep.errors import BayesrepError, OptionError, StudyError, plain, reason

SOURCES = ("cifar10h", "imagenetv2", "madrylab", "tables")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv
        Arguments without the program's name; default: those of the process.

    Returns
    -------
    int
        Exit status.
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    with warnings.catch_warnings():
        warnings.showwarning = _one_line_warning
        return _run(arguments)


def run_process() -> NoReturn:
    """Run the process's own command and end it: the script ``bayesrep``."""
    process.run(main)


def _run(arguments: argparse.Namespace) -> int:
    """Run a parsed command; what is wrong with its data, options or files becomes one line."""
    try:
        status = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) or process.stopped():
            _fail(f"interrupted; {arguments.kept(arguments)}")
            return process.INTERRUPTED
        return _refused(error)


def _refused(error: Exception) -> int:
    """Say what is wrong with the data, the options or a file; what else went wrong is ours."""
    match error:
        case BayesrepError():
            return _fail(reason(error))
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case OSError():
            return _fail(f"{getattr(error, 'filename', None) or 'a file'}: {reason(error)}")
        case MemoryError():
            return _fail(f"not enough memory for this: {reason(error)}")
        case _:
            raise error


def _nothing_kept(_: argparse.Namespace) -> str:
    return "nothing was written"


def _kept_draws(arguments: argparse.Namespace) -> str:
    kept = arguments.checkpoint
    return f"the same command goes on from {kept}" if kept else "nothing was written"


def _keep_compiled() -> None:
    """Keep compiled programs between commands, unless the user already decided where.

    The folder is one for each kind of processor: homes are shared between machines.
    """
    kind = f"{platform.machine()}-{zlib.crc32(_processor().encode()):08x}"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache() / f"xla-{kind}"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")


def _processor() -> str:
    """What this machine's processor can do, as far as the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _fail(message: str) -> int:
    print(f"bayesrep: {plain(message)}", file=sys.stderr)
    return 1


def _one_line_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"bayesrep: {category.__name__}: {plain(str(message))}", file=sys.stderr)


def _emit(arguments: argparse.Namespace, text: str, facts: dict[str, Any]) -> int:
    """Print the text, or the facts as JSON; either says which images the study is left without."""
    if left_out := _left_out(getattr(arguments, "study", None)):
        from bayesrep.report.text import left_out_lines

        text = "\n".join([text, *left_out_lines(left_out)])
        facts = {**facts, "left_out": left_out}
    print(json.dumps(facts) if arguments.json else text)
    return 0


def _left_out(study: Path | None) -> dict[str, dict[str, str]]:
    if study is None:
        return {}
    from bayesrep.studies.storage import images_left_out

    try:
        return images_left_out(study)
    except StudyError:  # what reads the study says it
        return {}


def _emit_table(
    arguments: argparse.Namespace, table: Any, text: str, facts: dict[str, Any] | None = None
) -> int:
    """Write the table where --csv says, and print it as text, or as JSON with further facts."""
    if arguments.csv:
        table.write_csv(arguments.csv)
    return _emit(arguments, text, {"rows": table.to_dicts(), **(facts or {})})


def _new_file(path: Path, *, force: bool = False) -> Path:
    """Refuse, before any work, a file that exists or a folder that cannot hold it."""
    if path.exists() and not force:
        raise StudyError(f"{path} exists; choose another path or give --force")
    if path.is_dir():
        raise StudyError(f"{path} is a folder; name a file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise StudyError(f"{path} cannot be written: {path.parent} is not a writable folder")
    return path


def _new_study(path: Path, *, force: bool) -> Path:
    if path.exists() and not force:
        raise StudyError(f"{path} exists; choose another path or give --force")
    return path


def _annotators(text: str) -> int | tuple[int, int]:
    low, high = _range(text)
    return (low, high) if ":" in text else low


def _range(text: str) -> tuple[int, int]:
    """LOW:HIGH, or N for N:N."""
    low, _, high = text.partition(":")
    try:
        ends = int(low), int(high or low)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not N or LOW:HIGH") from None
    if ends[0] > ends[1]:
        raise argparse.ArgumentTypeError(f"{text!r} runs backwards; give LOW:HIGH")
    return ends


def _demo(arguments: argparse.Namespace) -> int:
    from bayesrep.report.demo import check_demo_folder, demo_facts, demo_text, run_demo, write_demo

    if arguments.out:
        check_demo_folder(arguments.out)
    demo = run_demo(quick=arguments.quick, seed=arguments.seed, progress=not arguments.no_progress)
    text = demo_text(demo)
    if arguments.out:
        write_demo(demo, arguments.out)
        text += (
            f"\n\nWritten to {arguments.out}: study/, posterior.nc, estimates.csv, demo.json, "
            "adjusted-accuracy.png and .svg, report.html (open it in a browser)\n"
            f"Next: {process.program()} summarize {arguments.out}/study "
            f"{arguments.out}/posterior.nc"
        )
    return _emit(arguments, text, demo_facts(demo))


def _simulate(arguments: argparse.Namespace) -> int:
    from bayesrep.report.text import describe_study
    from bayesrep.studies.simulate import simulate_study

    _new_study(arguments.out, force=arguments.force)
    study = simulate_study(
        seed=arguments.seed,
        images=arguments.images,
        annotators=arguments.annotators,
        classifiers=arguments.classifiers,
        process=arguments.process,
    )
    study.write(arguments.out, force=arguments.force)
    text = f"{describe_study(study)}\nWritten to {arguments.out}"
    return _emit(arguments, text, {"study": str(arguments.out), "fingerprint": study.fingerprint()})


def _import(arguments: argparse.Namespace) -> int:
    from bayesrep.report.text import describe_study
    from bayesrep.sources import ANSWERED, READERS
    from bayesrep.sources.imagenetv2 import read_answers
    from bayesrep.studies.storage import awaits_counts, write_study

    tables = arguments.source == "tables"
    if not (tables and awaits_counts(arguments.out)):
        _new_study(arguments.out, force=arguments.force)
    reader = READERS[arguments.source]
    accepted = inspect.signature(reader).parameters
    given = {
        name: getattr(arguments, name)
        for name in ("reference", "replication", "name", "seed")
        if getattr(arguments, name) is not None
    }
    for name in given:
        if name not in accepted:
            raise StudyError(f"the source {arguments.source} takes no --{name}")
    if arguments.source == "imagenetv2" and all(path.is_dir() for path in arguments.files):
        return _begin_predictions(arguments, read_answers(arguments.files, **given))
    answers: Sequence[Any] = ()
    if arguments.source in ANSWERED:
        study, answers = ANSWERED[arguments.source](arguments.files, **given)
    else:
        study = reader(arguments.files, **given)
    if isinstance(study, dict):
        return _begin_study(arguments, study)
    write_study(study, arguments.out, force=arguments.force, answers=answers)
    text = f"{describe_study(study)}\nWritten to {arguments.out}"
    return _emit(arguments, text, {"study": str(arguments.out), "fingerprint": study.fingerprint()})


def _begin_predictions(arguments: argparse.Namespace, answers: list[Any]) -> int:
    """Write published answers to which counts are still to be added."""
    from bayesrep.studies.storage import write_answers

    write_answers(answers, arguments.out, force=arguments.force)
    names, program = [each.dataset for each in answers], process.program()
    text = (
        f"Answers of {len(answers[0].classifiers)} classifiers on {' and '.join(names)}\n"
        f"Written to {arguments.out}\n"
        f"Next: {program} multilabel {arguments.out} --dataset {names[0]} --labels FILE, or add "
        f"counts: {program} import tables counts.csv --reference {names[0]} --replication "
        f"{names[1]} --out {arguments.out}"
    )
    return _emit(arguments, text, {"study": str(arguments.out), "fingerprint": None})


def _begin_study(arguments: argparse.Namespace, datasets: dict[str, Any]) -> int:
    """Write a study whose predictions are still to be made."""
    from bayesrep.studies.storage import write_annotations

    source = {"source": "tables", "files": [path.name for path in map(Path, arguments.files)]}
    write_annotations(
        datasets,
        arguments.out,
        name=arguments.name or "study",
        provenance=source,
        force=arguments.force,
    )
    counted = ", ".join(f"{data.name} ({len(data.images):,} images)" for data in datasets.values())
    names = " and ".join(data.name for data in datasets.values())
    text = (
        f"{counted}\nWritten to {arguments.out}\n"
        f"Next: {process.program()} predict --study {arguments.out} --dataset NAME --images PATH "
        f"--classifiers NAMES, for {names}"
    )
    return _emit(arguments, text, {"study": str(arguments.out), "fingerprint": None})


def _check(arguments: argparse.Namespace) -> int:
    from bayesrep.report.text import describe_study
    from bayesrep.studies.storage import awaits_counts, check_study, read_study

    if awaits_counts(arguments.study):
        return _check_answers(arguments)
    try:
        study = read_study(arguments.study)
    except StudyError:
        broken = check_study(arguments.study)
        _emit(arguments, "\n".join(broken), {"study": str(arguments.study), "broken": broken})
        rules = "rule is" if len(broken) == 1 else "rules are"
        return _fail(f"{arguments.study}: {len(broken)} {rules} broken")
    text = f"{describe_study(study)}\nNo rule is broken."
    return _emit(arguments, text, {"study": str(arguments.study), "broken": []})


def _check_answers(arguments: argparse.Namespace) -> int:
    """Check a folder of answers to which counts are still to be added."""
    from bayesrep.protocols import read_predictions
    from bayesrep.report.text import plain
    from bayesrep.studies.folder import PREDICTIONS, names_in

    held = names_in(arguments.study / PREDICTIONS, "")
    answers = [read_predictions(arguments.study, (name,), ranks=1)[0] for name in held]
    lines = [
        f"{plain(each.dataset)}: answers of {len(each.classifiers)} classifiers to "
        f"{len(each.images):,} images"
        for each in answers
    ]
    lines.append("No counts of annotators yet: enough for match, multilabel and compare.")
    return _emit(arguments, "\n".join(lines), {"study": str(arguments.study), "broken": []})


def _predict(arguments: argparse.Namespace) -> int:
    from bayesrep.vision import catalog_names

    if arguments.list:
        return _list_catalogs(arguments)
    needed = ("images", "dataset", "study")
    missing = [f"--{name}" for name in needed if getattr(arguments, name) is None]
    if not arguments.classifiers and not arguments.catalog:
        missing.append("--classifiers or --catalog")
    if missing:
        print(f"bayesrep predict: {', '.join(missing)} must be given", file=sys.stderr)
        return 2
    if arguments.csv:
        _new_file(arguments.csv)
    from bayesrep.report.text import predictions_table
    from bayesrep.vision import predict

    classifiers = arguments.classifiers or []
    if arguments.catalog:
        here, vanished = catalog_names(arguments.catalog)
        classifiers += [name for name in here if name not in classifiers]
        for entry in vanished:
            print(f"bayesrep: {entry.classifier}: {entry.note}", file=sys.stderr)
    arguments.classifiers = classifiers
    report = predict(
        arguments.images,
        arguments.dataset,
        classifiers,
        arguments.study,
        labels=arguments.labels,
        device=arguments.device,
        batch_size=arguments.batch_size,
        precision=arguments.precision,
        workers=arguments.workers,
        weights=arguments.weights,
        cache=arguments.cache,
        ray=arguments.ray,
        force=arguments.force,
        allow_failures=arguments.allow_failures,
        progress=not arguments.no_progress,
    )
    done = f"Written to {arguments.study}/predictions"
    text = "\n".join([predictions_table(report.table), *report.changes(), done])
    if report.listed:
        text += f"\nNew in the study, with predictions on every data set: {len(report.listed)}"
    facts = {"failures": report.failures.to_dicts(), "listed": list(report.listed)}
    _emit_table(arguments, report.table, text, facts)
    if left_out := len(report.left_out):
        return _fail(
            f"{left_out} of {len(report.table)} classifiers were left out; the table says why"
        )
    if refused := len(report.refused):
        return _fail(
            f"{refused} image{'s' * (refused != 1)} could not be decoded, {arguments.study}/"
            "failures.parquet says why; repair them and run this again, or give --allow-failures "
            "to leave the study without them"
        )
    return 0


def _kept_answers(arguments: argparse.Namespace) -> str:
    from bayesrep.vision import kept

    if arguments.study is None or not arguments.classifiers:
        return "nothing was written"
    return kept(arguments.study, arguments.dataset, arguments.classifiers)


def _list_catalogs(arguments: argparse.Namespace) -> int:
    from bayesrep.report.text import columns
    from bayesrep.vision.catalogs import CATALOGS, catalog_names, read_catalog

    parts: list[str] = []
    facts: dict[str, Any] = {}
    for name, source in CATALOGS.items():
        here, _ = catalog_names(name)
        entries = read_catalog(name)
        rows = [[e.classifier, e.timm if e.timm in here else "-", e.note] for e in entries]
        parts.append(f"{name}: {source}\n\n{columns(['in the paper', 'in timm', ''], rows)}")
        facts[name] = [
            {"classifier": e.classifier, "timm": e.timm if e.timm in here else None, "note": e.note}
            for e in entries
        ]
    return _emit(arguments, "\n\n".join(parts), facts)


def _names(text: str) -> list[str]:
    """NAME,NAME,... or @FILE with a name a line, where # begins a comment."""
    if not text.startswith("@"):
        return [name for part in text.split(",") if (name := part.strip())]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{text[1:]}: {reason(error)}") from None
    return [name for line in lines if (name := line.split("#")[0].strip())]


def _count_or_auto(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a whole number above 0")
    return int(text)


def _estimate(arguments: argparse.Namespace) -> int:
    from bayesrep.estimators import analyse, classifier_table, gap_table
    from bayesrep.report.answer import measured_drop
    from bayesrep.report.text import estimates_table, gaps_table
    from bayesrep.studies.storage import read_study

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    study = read_study(arguments.study)
    analyses = analyse(
        study,
        arguments.methods,
        bootstrap=arguments.bootstrap,
        interval=arguments.interval,
        seed=arguments.seed,
        progress=not arguments.no_progress,
    )
    table, gaps = classifier_table(analyses), gap_table(analyses)
    parts = gaps_table(gaps, clear=measured_drop(study).above)
    text = f"{estimates_table(table)}\n\nMean over classifiers and line:\n\n{parts}"
    return _emit_table(arguments, table, text, {"gaps": gaps.to_dicts()})


def _mixtures(arguments: argparse.Namespace) -> int:
    from bayesrep.estimators.components import compare_components
    from bayesrep.report.text import components_table
    from bayesrep.studies.storage import read_study

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    low, high = arguments.components
    table = compare_components(
        read_study(arguments.study),
        range(low, high + 1),
        folds=arguments.folds,
        seed=arguments.seed,
    )
    return _emit_table(arguments, table, components_table(table))


def _compare_annotators(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from bayesrep.estimators.annotators import compare_annotators, linearity
    from bayesrep.report.text import annotators_table
    from bayesrep.studies.storage import read_study

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    table = compare_annotators(read_study(arguments.study))
    line = linearity(table)
    facts = {"linearity": asdict(line) if line else None}
    return _emit_table(arguments, table, annotators_table(table, line), facts)


def _fit(arguments: argparse.Namespace) -> int:
    _new_file(arguments.out, force=arguments.force)
    _keep_compiled()
    from bayesrep.files import trial

    trial.start()  # beside the import of JAX
    from bayesrep.inference import fit
    from bayesrep.posterior import write_posterior
    from bayesrep.studies.storage import read_study

    posterior = fit(
        read_study(arguments.study),
        model=arguments.model,
        method=arguments.method,
        chains=arguments.chains,
        warmup=arguments.warmup,
        draws=arguments.draws,
        seed=arguments.seed,
        progress=not arguments.no_progress,
        feedback=arguments.feedback,
        groups=arguments.groups,
        datasets=arguments.datasets,
        device=arguments.device,
        devices=arguments.devices,
        checkpoint=arguments.checkpoint,
        **dict(arguments.set),
    )
    write_posterior(posterior, arguments.out, force=arguments.force)
    attributes = posterior.posterior.attrs
    text = (
        f"{attributes['verdict']}\nWritten to {arguments.out}\n"
        f"Next: {process.program()} summarize {arguments.study} {arguments.out}"
    )
    converged = bool(attributes["converged"])
    facts = {"posterior": str(arguments.out), "converged": converged}
    _emit(arguments, text, {**facts, "verdict": attributes["verdict"]})
    return 0 if converged else _fail("the fit was written but has not converged")


def _summarize(arguments: argparse.Namespace) -> int:
    from bayesrep.posterior.fitted import Fitted
    from bayesrep.report.answer import answer_for, drop_of, measured_drop
    from bayesrep.report.text import estimates_table, gaps_table, populations_text
    from bayesrep.summary.tables import accuracies
    from bayesrep.summary.tables import gaps as summary_gaps

    study, posterior = _fitted(arguments)
    fitted = Fitted(study, posterior).trusted(allow_unconverged=arguments.allow_unconverged)
    table, gaps = accuracies(fitted), summary_gaps(fitted)
    measured = measured_drop(study)
    answer = plain(answer_for(study, drop_of(gaps, measured)))
    text = (
        f"{estimates_table(table)}\n\nMean over classifiers and line:\n\n"
        f"{gaps_table(gaps, clear=measured.above)}\n\n{answer}\n{populations_text(gaps)}"
    )
    return _emit_table(arguments, table, text, {"gaps": gaps.to_dicts()})


def _fitted(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """The study and the posterior of a command, once its output can be written."""
    from bayesrep.posterior import read_posterior
    from bayesrep.studies.storage import read_study

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    return read_study(arguments.study), read_posterior(arguments.posterior)


def _ranks(arguments: argparse.Namespace) -> int:
    from bayesrep.report.text import ranks_table
    from bayesrep.summary.tables import rank_classifiers

    table = rank_classifiers(*_fitted(arguments), allow_unconverged=arguments.allow_unconverged)
    return _emit_table(arguments, table, ranks_table(table))


def _pairs(arguments: argparse.Namespace) -> int:
    from bayesrep.report.text import pairs_table
    from bayesrep.summary.tables import compare_classifiers

    study, posterior = _fitted(arguments)
    table = compare_classifiers(study, posterior, allow_unconverged=arguments.allow_unconverged)
    return _emit_table(arguments, table, pairs_table(table, study.classifiers))


def _images(arguments: argparse.Namespace) -> int:
    from bayesrep.report.text import images_table
    from bayesrep.summary import describe_images

    table = describe_images(*_fitted(arguments))
    return _emit_table(arguments, table, images_table(table))


def _diagnose(arguments: argparse.Namespace) -> int:
    from bayesrep.checks import diagnose
    from bayesrep.checks.diagnosis import text
    from bayesrep.posterior import read_posterior
    from bayesrep.studies.storage import read_study

    study = read_study(arguments.study) if arguments.study else None
    found = diagnose(read_posterior(arguments.posterior), study)
    facts = {
        "trust": found.trust,
        "sentences": found.sentences,
        "checks": found.checks.to_dicts(),
        "predictions": None if found.predictions is None else found.predictions.to_dicts(),
        "sensitivity": None if found.sensitivity is None else found.sensitivity.to_dicts(),
    }
    _emit(arguments, text(found), facts)
    return _fail(f"{arguments.posterior}: do not trust this fit") if found.trust == "no" else 0


def _loo(arguments: argparse.Namespace) -> int:
    from bayesrep.checks import compare
    from bayesrep.checks.comparison import text
    from bayesrep.posterior import read_posterior

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    table = compare({str(path): read_posterior(path) for path in arguments.posteriors})
    return _emit_table(arguments, table, text(table))


def _match(arguments: argparse.Namespace) -> int:
    from bayesrep.protocols import match, read_predictions
    from bayesrep.report.text import matched_table, rows_table

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    names = (arguments.reference, arguments.replication)
    found = match(
        *read_predictions(arguments.study, names, ranks=1, confidence=True),
        epsilon=arguments.epsilon,
        runs=arguments.runs,
        seed=arguments.seed,
        interval=arguments.interval,
        progress=not arguments.no_progress,
    )
    table = getattr(found, arguments.table)
    text = matched_table(table) if arguments.table == "accuracies" else rows_table(table)
    return _emit_table(arguments, table, text)


def _multilabel(arguments: argparse.Namespace) -> int:
    from bayesrep.protocols import (
        class_subsets,
        co_occurrence,
        multilabel,
        read_label_sets,
        read_predictions,
    )
    from bayesrep.report.text import multilabel_table, rows_table

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    (predictions,) = read_predictions(arguments.study, (arguments.dataset,))
    sets = read_label_sets(arguments.labels, predictions)
    groups = _class_groups(arguments, predictions.classes)
    if arguments.table == "co-occurrence":
        chosen = _grouped_by(arguments, groups)
        table = co_occurrence(predictions, sets, chosen, interval=arguments.interval)
        return _emit_table(arguments, table, rows_table(table))
    table = multilabel(
        predictions,
        sets,
        subsets=class_subsets(predictions.classes, groups),
        empty=arguments.empty,
        interval=arguments.interval,
        trials=arguments.trials,
        seed=arguments.seed,
    )
    return _emit_table(arguments, table, multilabel_table(table))


def _class_groups(arguments: argparse.Namespace, classes: Sequence[str]) -> dict[str, Any]:
    from bayesrep.protocols import read_groups

    return read_groups(arguments.classes, classes) if arguments.classes else {}


def _grouped_by(arguments: argparse.Namespace, groups: dict[str, Any]) -> Any:
    """The column of --classes by which classes are put together; None for single classes."""
    if not groups:
        return None
    if arguments.by is None and len(groups) == 1:
        return next(iter(groups.values()))
    if arguments.by not in groups:
        raise StudyError(f"--by is {arguments.by}; {arguments.classes} has {', '.join(groups)}")
    return groups[arguments.by]


def _compare(arguments: argparse.Namespace) -> int:
    from bayesrep.protocols import compare, read_humans, read_label_sets, read_predictions
    from bayesrep.report.text import comparison_table, rows_table

    if arguments.csv:
        _new_file(arguments.csv, force=arguments.force)
    names = (arguments.reference, arguments.replication)
    both = read_predictions(arguments.study, names, ranks=1)
    humans = read_humans(arguments.humans, *both) if arguments.humans else None
    if arguments.table == "confusion":
        return _confusion(arguments, both, humans)
    sets = None
    if arguments.labels:
        one, other = (read_label_sets(arguments.labels, data) for data in both)
        sets = one, other
    found = compare(
        *both, humans=humans, sets=sets, interval=arguments.interval, seed=arguments.seed
    )
    if arguments.table == "accuracies":
        table = _with_published(found.accuracies) if arguments.published else found.accuracies
        return _emit_table(
            arguments,
            table,
            comparison_table(table, found.lines),
            {"lines": found.lines.to_dicts()},
        )
    table = found.lines if arguments.table == "lines" else found.pairs()
    return _emit_table(arguments, table, rows_table(table))


def _with_published(accuracies: Any) -> Any:
    import polars as pl

    from bayesrep.protocols import shankar2020

    published = shankar2020().filter(pl.col("subset") == "all").drop("subset")
    return pl.concat(
        [
            accuracies,
            published.with_columns(
                pl.format("{} (published)", "kind").alias("kind"),
                pl.lit("multi-label").alias("metric"),
            ),
        ],
        how="diagonal",
    )


def _confusion(arguments: argparse.Namespace, both: Any, humans: Any) -> int:
    from bayesrep.protocols import beside, confusion, confusion_difference
    from bayesrep.report.text import rows_table

    place = ("reference", "replication").index(arguments.dataset)
    data = both[place] if humans is None else beside(both[place], humans[place])
    groups = _grouped_by(arguments, _class_groups(arguments, data.classes))
    if arguments.between:
        if len(arguments.between) != 2:
            raise StudyError("--between takes two names: --between resnet50,A")
        one, other = arguments.between
        table = confusion_difference(data, one, other, groups)
    else:
        table = confusion(data, groups, interval=arguments.interval)
    return _emit_table(arguments, table, rows_table(table))


def _figure(arguments: argparse.Namespace) -> int:
    from bayesrep.report.figure_names import FIGURES, named
    from bayesrep.report.figures import check_format, save_figure

    if arguments.list:
        described = {name: figure.description for name, figure in FIGURES.items()}
        width = max(map(len, described))
        lines = (f"{name.ljust(width)}  {text}" for name, text in described.items())
        return _emit(arguments, "\n".join(lines), described)
    given = {"NAME": arguments.name, "--out": arguments.out}
    if missing := [argument for argument, value in given.items() if value is None]:
        print(f"bayesrep figure: {', '.join(missing)} must be given", file=sys.stderr)
        return 2
    figure = named(arguments.name)
    options = _figure_options(arguments, figure)
    _new_file(check_format(arguments.out), force=arguments.force)
    _keep_compiled()
    drawn = figure.draw(*_figure_inputs(arguments, figure), **options)
    save_figure(drawn, arguments.out)
    facts = {"figure": arguments.name, "out": str(arguments.out)}
    return _emit(arguments, f"Written to {arguments.out}", facts)


def _figure_options(arguments: argparse.Namespace, figure: Any) -> dict[str, Any]:
    """The options that the figure takes; refused where it does not take what was asked for."""
    asked = {"bootstrap": arguments.bootstrap, "classifiers": arguments.classifier}
    given = {name: value for name, value in asked.items() if value is not None}
    for name in given:
        if name not in figure.options:
            raise StudyError(f"{arguments.name} takes no --{name.removesuffix('s')}")
    given |= {"seed": arguments.seed, "progress": not arguments.no_progress}
    return {name: value for name, value in given.items() if name in figure.options}


def _figure_inputs(arguments: argparse.Namespace, figure: Any) -> list[Any]:
    """The study and the posterior, as far as the figure needs them."""
    needs = {"study": figure.needs_study, "posterior": figure.needs_posterior}
    for what, needed in needs.items():
        path = getattr(arguments, what)
        if needed and path is None:
            raise StudyError(f"{arguments.name} is drawn of a {what}; name one after it")
        if path is not None and not needed:
            raise StudyError(f"{arguments.name} takes no {what}; leave out {path}")
    inputs: list[Any] = []
    if figure.needs_study:
        from bayesrep.studies.storage import awaits_counts, read_study

        if figure.takes_answers and awaits_counts(arguments.study):
            from bayesrep.protocols import read_predictions

            names = (arguments.reference, arguments.replication)
            inputs.append(read_predictions(arguments.study, names, ranks=1))
        else:
            inputs.append(read_study(arguments.study))
    if figure.needs_posterior:
        from bayesrep.posterior import read_posterior

        inputs.append(read_posterior(arguments.posterior))
    return inputs


def _report(arguments: argparse.Namespace) -> int:
    from bayesrep.studies.storage import read_study

    if arguments.out.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--out is {arguments.out}; name a file that ends in .html")
    _new_file(arguments.out, force=arguments.force)
    _keep_compiled()
    from bayesrep.files import trial

    trial.start()  # beside the import of JAX
    from bayesrep.posterior import read_posterior
    from bayesrep.report.content import gather
    from bayesrep.report.page import write_page

    posterior = None if arguments.posterior is None else read_posterior(arguments.posterior)
    study = read_study(arguments.study)
    content = gather(study, posterior, bootstrap=arguments.bootstrap, seed=arguments.seed)
    write_page(content, arguments.out)
    lines = [f"Written to {arguments.out}"]
    lines += [f"Without {name}: {why}" for name, why in content.missing.items()]
    facts = {"out": str(arguments.out), "missing": dict(content.missing)}
    return _emit(arguments, "\n".join(lines), facts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bayesrep", description="How much of a benchmark's accuracy drop is real?"
    )
    parser.add_argument("--version", action="version", version=f"bayesrep {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_demo, _add_simulate, _add_import, _add_predict, _add_check):
        add(commands)
    for add in (_add_estimate, _add_fit):
        add(commands)
    for add in (_add_mixtures, _add_annotators, _add_summarize, _add_ranks, _add_pairs):
        add(commands)
    for add in (_add_images, _add_diagnose, _add_loo):
        add(commands)
    for add in (_add_match, _add_multilabel, _add_compare, _add_figure):
        add(commands)
    _add_report(commands)
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    command.set_defaults(run=run, kept=_nothing_kept)
    return command


def _add_force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="replace what is at the output path")


def _seed(text: str) -> int:
    if not (text.isdecimal() and int(text) <= bounds.SEED):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {bounds.SEED}")
    return int(text)


def _add_seed(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=_seed, default=0, help="seed of everything random (0)")


def _add_csv(command: argparse.ArgumentParser) -> None:
    command.add_argument("--csv", type=Path, metavar="FILE", help="write the table here too")
    _add_force(command)


def _add_demo(commands: Any) -> None:
    command = _command(commands, "demo", _demo, "simulate a study, fit it, compare with the truth")
    command.add_argument("--out", type=Path, metavar="DIR", help="write tables and figures here")
    command.add_argument("--quick", action="store_true", help="a small study, in under a minute")
    command.add_argument("--no-progress", action="store_true", help="no bar on standard error")
    _add_seed(command)


def _add_simulate(commands: Any) -> None:
    command = _command(commands, "simulate", _simulate, "write a simulated study of known truth")
    command.add_argument("out", type=Path, metavar="OUT")
    command.add_argument("--images", type=int, default=10_000, help="in each data set (10000)")
    command.add_argument(
        "--annotators", type=_annotators, default=36, metavar="N|LOW:HIGH", help="per image (36)"
    )
    command.add_argument("--classifiers", type=int, default=136, help="how many (136)")
    command.add_argument(
        "--process", choices=("outside", "non-monotone", "inside"), default="outside"
    )
    _add_seed(command)
    _add_force(command)


def _add_import(commands: Any) -> None:
    command = _command(commands, "import", _import, "turn published data or tables into a study")
    command.add_argument("source", choices=SOURCES, metavar="SOURCE", help=", ".join(SOURCES))
    command.add_argument("files", type=Path, nargs="+", metavar="FILE")
    command.add_argument("--out", type=Path, required=True, metavar="STUDY")
    command.add_argument("--reference", help="name of the reference data set")
    command.add_argument("--replication", help="name of the replication data set")
    command.add_argument("--name", help="name of the study (tables)")
    command.add_argument("--seed", type=_seed, help="of the placebo replication (cifar10h)")
    _add_force(command)


def _add_check(commands: Any) -> None:
    command = _command(commands, "check", _check, "list every broken rule of a study")
    command.add_argument("study", type=Path, metavar="STUDY")


def _add_predict(commands: Any) -> None:
    command = _command(
        commands, "predict", _predict, "run timm classifiers over a folder of images (extra [timm])"
    )
    command.add_argument(
        "--images", type=Path, metavar="PATH", help="class folders, flat folder, .tar or .csv"
    )
    command.add_argument("--dataset", metavar="NAME", help="the data set's name in the study")
    command.add_argument("--study", type=Path, help="the study's folder, created where needed")
    command.add_argument(
        "--classifiers",
        type=_names,
        metavar="NAMES|@FILE",
        help="timm's names, separated by commas, or a file with one a line",
    )
    command.add_argument("--catalog", metavar="NAME", help="the classifiers of a paper: see --list")
    command.add_argument("--list", action="store_true", help="list the catalogs and stop")
    command.add_argument(
        "--labels", type=Path, metavar="FILE", help="ground truth of a flat folder"
    )
    command.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps")
    command.add_argument("--batch-size", type=_count_or_auto, metavar="auto|N")
    command.add_argument(
        "--precision", default="auto", choices=("auto", "float32", "bfloat16", "float16")
    )
    command.add_argument("--workers", type=_count_or_auto, metavar="auto|N", help="threads")
    command.add_argument(
        "--weights", type=Path, metavar="DIR", help="files of weights instead of the hub's"
    )
    command.add_argument(
        "--cache", type=Path, metavar="DIR", help="keep preprocessed images for later runs"
    )
    command.set_defaults(kept=_kept_answers)
    command.add_argument("--ray", metavar="ADDRESS|local", help="spread over Ray (extra [ray])")
    command.add_argument(
        "--allow-failures",
        action="store_true",
        help="leave the study without images that cannot be decoded",
    )
    command.add_argument("--force", action="store_true", help="predict again from the start")
    command.add_argument("--no-progress", action="store_true", help="no progress on stderr")
    command.add_argument("--csv", type=Path, metavar="FILE", help="also write the table here")


def _add_estimate(commands: Any) -> None:
    command = _command(commands, "estimate", _estimate, "point estimates of adjusted accuracy")
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument(
        "--methods",
        default="raw,naive,jackknife,em-spline",
        help="comma-separated (raw,naive,jackknife,em-spline), each with options in parentheses: "
        "'naive(annotators=10),em-spline(components=4)'",
    )
    command.add_argument(
        "--bootstrap", type=int, default=0, metavar="B", help="replicates for 95 %% intervals (0)"
    )
    command.add_argument(
        "--interval", choices=("percentile", "bca"), default="percentile", help="(percentile)"
    )
    command.add_argument("--no-progress", action="store_true", help="no bar on standard error")
    _add_seed(command)
    _add_csv(command)


def _add_mixtures(commands: Any) -> None:
    command = _command(
        commands, "mixtures", _mixtures, "compare mixtures of the selection frequency by size"
    )
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument(
        "--components", type=_range, default=(1, 6), metavar="K|LOW:HIGH", help="(1:6)"
    )
    command.add_argument(
        "--folds", type=int, default=5, help="parts for the held-out likelihood (5)"
    )
    _add_seed(command)
    _add_csv(command)


def _add_annotators(commands: Any) -> None:
    command = _command(
        commands,
        "annotators",
        _compare_annotators,
        "naive and jackknife estimates for every number of annotators, and whether they are a line",
    )
    command.add_argument("study", type=Path, metavar="STUDY")
    _add_csv(command)


def _add_fit(commands: Any) -> None:
    command = _command(commands, "fit", _fit, "sample the joint posterior with NUTS")
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument("--out", type=Path, required=True, metavar="posterior.nc")
    command.add_argument(
        "--model",
        choices=("joint", "shared-difficulty"),
        default="joint",
        help="joint, right for single classifiers, or shared-difficulty, for all together (joint)",
    )
    command.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option or prior of the model, such as components=3, curve=gp or slope=2,1.5; "
        "may be given several times",
    )
    methods = ("nuts", "laplace", "flow")
    command.add_argument(
        "--method", choices=methods, default="nuts", help="nuts, or a quick approximation (nuts)"
    )
    command.add_argument(
        "--feedback",
        choices=("full", "cut"),
        default="full",
        help="cut: mixtures from the annotators alone (full)",
    )
    command.add_argument("--groups", metavar="COLUMN", help="pool partially over these groups")
    command.add_argument(
        "--datasets",
        type=lambda text: tuple(text.split(",")),
        default=("reference", "replication"),
        metavar="ROLE,...",
        help="data sets in the hierarchy (reference,replication)",
    )
    command.add_argument("--device", default="auto", help="auto, cpu or gpu (auto)")
    command.add_argument(
        "--devices",
        type=int,
        default=1,
        metavar="N",
        help="spread the images over this many (shared-difficulty; 1)",
    )
    command.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="keep draws here; go on after a break"
    )
    command.set_defaults(kept=_kept_draws)
    for name, default in (("chains", 4), ("warmup", 500), ("draws", 500)):
        command.add_argument(f"--{name}", type=int, default=default, help=f"({default})")
    command.add_argument("--no-progress", action="store_true", help="no bar on standard error")
    _add_seed(command)
    _add_force(command)


def _setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where VALUE is a number, true or false, a word, or numbers with commas."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier() or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    parts = [_literal(part.strip()) for part in value.split(",")]
    return name, tuple(parts) if len(parts) > 1 else parts[0]


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _add_summarize(commands: Any) -> None:
    command = _command(
        commands, "summarize", _summarize, "adjusted accuracies with credible intervals"
    )
    _add_fitted(command)
    _add_unconverged(command)


def _add_fitted(command: argparse.ArgumentParser) -> None:
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument("posterior", type=Path, metavar="posterior.nc")
    _add_csv(command)


def _add_unconverged(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--allow-unconverged", action="store_true", help="show a fit that failed its checks"
    )


def _add_ranks(commands: Any) -> None:
    command = _command(commands, "ranks", _ranks, "rank classifiers by adjusted accuracy")
    _add_fitted(command)
    _add_unconverged(command)


def _add_pairs(commands: Any) -> None:
    command = _command(
        commands, "pairs", _pairs, "which of two classifiers is better once selection is removed"
    )
    _add_fitted(command)
    _add_unconverged(command)


def _add_images(commands: Any) -> None:
    command = _command(
        commands, "images", _images, "how hard every image is, for people and for classifiers"
    )
    _add_fitted(command)


def _add_diagnose(commands: Any) -> None:
    command = _command(
        commands, "diagnose", _diagnose, "say whether to trust a fit, and what to change"
    )
    command.add_argument("posterior", type=Path, metavar="posterior.nc")
    command.add_argument(
        "--study", type=Path, metavar="STUDY", help="check the agreement of classifiers too"
    )


def _add_loo(commands: Any) -> None:
    command = _command(
        commands, "loo", _loo, "compare fits of one study by how well they predict what is left out"
    )
    command.add_argument("posteriors", type=Path, nargs="+", metavar="posterior.nc")
    _add_csv(command)


def _add_report(commands: Any) -> None:
    command = _command(
        commands, "report", _report, "write a page of all results that needs no network"
    )
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument("posterior", type=Path, nargs="?", metavar="posterior.nc")
    command.add_argument("--out", type=Path, required=True, metavar="report.html")
    command.add_argument(
        "--bootstrap", type=int, default=50, metavar="B", help="replicates for intervals (50)"
    )
    _add_seed(command)
    _add_force(command)


def _add_protocol(command: argparse.ArgumentParser, *tables: str) -> None:
    """What all protocols take."""
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument(
        "--table", choices=tables, default=tables[0], help=f"what to show ({tables[0]})"
    )
    command.add_argument(
        "--interval",
        choices=("jeffreys", "wilson", "clopper-pearson"),
        default="jeffreys",
        help="of accuracies (jeffreys)",
    )
    _add_seed(command)
    _add_csv(command)


def _add_datasets(command: argparse.ArgumentParser) -> None:
    for role in ("reference", "replication"):
        command.add_argument(
            f"--{role}",
            default=role,
            metavar="NAME",
            help=f"the data set, where the study names no {role}",
        )


def _add_classes(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--classes",
        type=Path,
        metavar="FILE",
        help="groups of classes: a table with the column class, or superclasses.npy",
    )
    command.add_argument(
        "--by", metavar="COLUMN", help="the column of --classes to put classes together by"
    )


def _add_match(commands: Any) -> None:
    command = _command(
        commands, "match", _match, "accuracy on images about which a classifier says alike"
    )
    _add_protocol(command, "accuracies", "curves", "confidence")
    _add_datasets(command)
    command.add_argument(
        "--epsilon", type=float, default=0.005, help="largest difference in probability (0.005)"
    )
    command.add_argument("--runs", type=int, default=10, help="random matchings (10)")
    command.add_argument("--no-progress", action="store_true", help="no bar on standard error")


def _add_multilabel(commands: Any) -> None:
    command = _command(
        commands, "multilabel", _multilabel, "accuracy by all labels that are right on an image"
    )
    _add_protocol(command, "accuracies", "co-occurrence")
    command.add_argument(
        "--labels",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="label sets: real.json, or tables with the columns image and label",
    )
    command.add_argument(
        "--dataset", default="reference", metavar="NAME", help="role or name (reference)"
    )
    _add_classes(command)
    command.add_argument(
        "--empty",
        choices=("exclude", "wrong"),
        default="exclude",
        help="images on which no label is right (exclude)",
    )
    command.add_argument(
        "--trials", type=int, default=1000, help="random sets of classes, for p-values (1000)"
    )


def _add_compare(commands: Any) -> None:
    command = _command(
        commands, "compare", _compare, "classifiers beside people and each other on both data sets"
    )
    _add_protocol(command, "accuracies", "pairs", "lines", "confusion")
    _add_datasets(command)
    command.add_argument(
        "--humans", type=Path, metavar="FILE", help="a table of image, labeler, answer"
    )
    command.add_argument(
        "--labels", type=Path, nargs="+", metavar="FILE", help="label sets of both data sets"
    )
    command.add_argument(
        "--published", action="store_true", help="add the people and networks of Shankar et al."
    )
    _add_classes(command)
    command.add_argument(
        "--dataset",
        choices=("reference", "replication"),
        default="reference",
        help="of the confusion (reference)",
    )
    command.add_argument(
        "--between", type=_names, metavar="A,B", help="the confusion of one less another's"
    )


def _add_figure(commands: Any) -> None:
    command = _command(commands, "figure", _figure, "draw one of the paper's figures of a study")
    command.add_argument("name", nargs="?", metavar="NAME", help="such as paper-6: see --list")
    command.add_argument("study", type=Path, nargs="?", metavar="STUDY")
    command.add_argument("posterior", type=Path, nargs="?", metavar="posterior.nc")
    command.add_argument("--out", type=Path, metavar="FILE", help="ends in .pdf, .svg or .png")
    command.add_argument("--list", action="store_true", help="list the figures and stop")
    _add_datasets(command)
    command.add_argument(
        "--classifier",
        action="append",
        metavar="NAME",
        help="show this one, where a figure shows a few; may be given several times",
    )
    command.add_argument(
        "--bootstrap", type=int, metavar="B", help="replicates for 95 %% intervals (the paper's)"
    )
    command.add_argument("--no-progress", action="store_true", help="no bar on standard error")
    _add_seed(command)
    _add_force(command)
