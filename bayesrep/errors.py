"""The library's own exceptions and warnings, each kind by what is at fault.

Their rules have their sentences in `rules.toml`; whatever else is raised is a mistake of ours.
"""

import shlex
import tomllib
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import cache
from numbers import Number
from pathlib import Path
from string import Formatter
from typing import Any, LiteralString, Self

MAX_LISTED = 5  # how many offenders a message names before it only counts them
MAX_LETTERS = 200  # how many letters of an offender it shows


@cache
def sentences() -> Mapping[str, str]:
    """The sentence of every rule of `rules.toml`; `{path:word}` is the fact as a shell reads it."""
    text = Path(__file__).with_name("rules.toml").read_text(encoding="utf-8")
    return {rule: line for room in tomllib.loads(text).values() for rule, line in room.items()}


class _Sentence(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "word":
            return quote_word(str(value))
        return super().format_field(value, format_spec)


class Violation(str):
    """One broken rule of `rules.toml` as the line that tells it, with the facts that it names."""

    rule: str
    facts: Mapping[str, Any]

    def __new__(cls, rule: LiteralString, /, **facts: Any) -> Self:
        """Fill the rule's sentence in with its facts."""
        if rule not in sentences():
            raise LookupError(f"rules.toml has no sentence of the rule {rule!r}")
        return cls._make(_Sentence().vformat(sentences()[rule], (), facts), rule, facts)

    @classmethod
    def _make(cls, sentence: str, rule: str, facts: Mapping[str, Any]) -> Self:
        violation = super().__new__(cls, sentence)
        violation.rule = rule
        violation.facts = {name: _plain_value(value) for name, value in facts.items()}
        return violation

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, (str(self), self.rule, self.facts)

    @property
    def offenders(self) -> tuple[str, ...]:
        """The names of all images, classifiers, columns, ... that break the rule."""
        listed = (value.names for value in self.facts.values() if isinstance(value, Listing))
        return tuple(name for names in listed for name in names)

    def to_json(self) -> Mapping[str, Any]:
        """Return plain values from which `of_json` rebuilds the violation in another process."""
        listed = {n: each.names for n, each in self.facts.items() if isinstance(each, Listing)}
        return {"line": str(self), "rule": self.rule, "facts": self.facts, "listed": listed}

    @classmethod
    def of_json(cls, record: Mapping[str, Any]) -> Self:
        """A violation as another process has told it."""
        listed = {n: Listing(record["facts"][n], names) for n, names in record["listed"].items()}
        return cls._make(record["line"], record["rule"], {**record["facts"], **listed})

    def add_place(self, place: object) -> Self:
        """Return the violation at a place that its line does not name: `place: line`."""
        return self.reword(f"{place}: {self}")

    def append_text(self, more: str) -> Self:
        """Return the violation with more at the end of its line."""
        return self.reword(f"{self}{more}")

    def reword(self, line: str) -> Self:
        """Return the violation in another line."""
        return self._make(line, self.rule, self.facts)


def _plain_value(value: Any) -> Any:
    """A fact that can be kept, compared and sent to another process."""
    if isinstance(value, str | int | float | None):
        return value
    scalar: Any = value if isinstance(value, Number) else None
    return scalar.item() if hasattr(scalar, "item") else str(value)  # one of NumPy's


class BayesrepError(Exception):
    """Error that the library raises on purpose, in one line; any other exception is a bug.

    Parameters
    ----------
    rule
        The name of the rule that is broken, as the list of all rules has it; or a violation.
    **facts
        What the rule's sentence names.

    Attributes
    ----------
    rule : str
        What is wrong, in a word that stays the same whatever its sentence says.
    facts : mapping
        What the sentence names, by name.
    offenders : tuple of str
        All images, classifiers, columns, ... that break the rule, where the sentence names some.
    """

    def __init__(self, rule: LiteralString | Violation, /, **facts: Any) -> None:
        self.violation = rule if isinstance(rule, Violation) else Violation(rule, **facts)
        self.rule, self.facts = self.violation.rule, self.violation.facts
        self.offenders = self.violation.offenders
        super().__init__(self.violation)

    def add_place(self, place: object) -> Self:
        """Return the error at a place that its line does not name yet: `place: line`."""
        return type(self)(self.violation.add_place(place))


class OptionError(BayesrepError, ValueError):
    """An option that is unknown, out of its range, or does not go with the others or the data."""


class StudyError(BayesrepError, ValueError):
    """Data that cannot be a study; the message is one line naming what, where and what to do."""


class PosteriorError(BayesrepError, ValueError):
    """A posterior that cannot be used: a broken file, another study's, or without what it takes."""


class PredictionError(BayesrepError, ValueError):
    """Images, labels or classifiers that cannot be evaluated; one line as in `StudyError`."""


class ClusterError(BayesrepError, RuntimeError):
    """A cluster that cannot be joined, or whose workers die again and again."""


class ConvergenceError(BayesrepError, RuntimeError):
    """A posterior whose sampler did not converge was used without being allowed explicitly."""


class ConvergenceWarning(UserWarning):
    """A fit failed a convergence check; the message names the quantity and what to try."""


class TableWarning(UserWarning):
    """A table was read otherwise than it is written, and the text says how."""


class PredictionWarning(UserWarning):
    """Predictions were made, but something about them is probably wrong."""


class ProtocolWarning(UserWarning):
    """An evaluation protocol leaves something out."""


class EstimateWarning(UserWarning):
    """A point estimate rests on more than the counts."""


class InterpolationWarning(EstimateWarning):
    """The reference has images at counts at which the replication has none."""


class IdentificationWarning(EstimateWarning):
    """The counts or the answers do not determine something that is fitted to them."""


def reason(error: BaseException) -> str:
    """Describe an exception in one line: its first, or the whole line of one of ours."""
    if isinstance(error, BayesrepError):
        return plain_text(str(error))
    text = getattr(error, "strerror", None)
    try:
        lines = (text if isinstance(text, str) and text.strip() else str(error)).split("\n")
    except Exception:  # an exception of somebody else's that cannot say what it is
        lines = []
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)


@contextmanager
def refuse_any(refusal: Callable[[str], BayesrepError]) -> Generator[None]:
    """Whatever others' code raises in the block, but for a lack of memory, is a refusal of ours."""
    try:
        yield
    except (BayesrepError, MemoryError):
        raise
    except Exception as error:
        raise refusal(reason(error)) from error


def kind_and_reason(error: BaseException) -> str:
    """Describe an exception with its type, where the text alone may say little."""
    return f"{type(error).__name__}: {reason(error)}"


def plain_text(text: str) -> str:
    r"""A text that cannot steer a terminal: the unprintable is escaped, as in `\x1b`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quote_word(word: str) -> str:
    r"""A word as a shell reads it: with `$'\x0a'` for what a terminal must not see."""
    if word.isprintable():
        return shlex.quote(word)
    letters = (c if c.isprintable() and c not in "\\'" else _in_bytes(c) for c in word)
    return f"$'{''.join(letters)}'"


def _in_bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


class Listing(str):
    """Offenders as a sentence names them: the first five, and the number of all `names`."""

    names: tuple[str, ...]

    def __new__(cls, sentence: str, names: Iterable[str]) -> Self:
        """Keep the names beside the sentence."""
        listed = super().__new__(cls, sentence)
        listed.names = tuple(names)
        return listed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.names)


def listing(items: Iterable[object], noun: str = "image") -> Listing:
    """The first five offenders by name, and the number of all."""
    names = [str(item) for item in items]
    more = f", ... ({len(names)} {noun}s)" if len(names) > MAX_LISTED else ""
    names_shown = ", ".join(
        repr(n if len(n) <= MAX_LETTERS else f"{n[:MAX_LETTERS]}...") for n in names[:MAX_LISTED]
    )
    return Listing(f"{noun}{'s' if len(names) != 1 else ''} {names_shown}{more}", names)


def find_nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The one of some names that another was probably meant to be, whatever its case."""
    from difflib import get_close_matches

    folded = {each.casefold().strip(): each for each in candidates if each != name}
    close = get_close_matches(name.casefold().strip(), list(folded), n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The end of a message on an unknown name: nothing, or `; did you mean 'x'?`."""
    meant = find_nearest(name, candidates)
    return "" if meant is None else f"; did you mean {meant!r}?"
