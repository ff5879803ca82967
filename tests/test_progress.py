"""What a long computation says while it runs, and that it says nothing unless asked."""

from threading import Thread

import pytest

from bayesrep import progress
from bayesrep.progress import Stopwatch, progress_bar


def test_a_bar_names_its_stage_and_what_it_counts(capsys):
    with progress_bar(40, "draw", "divergences", show=True) as bar:
        bar.stage("sampling")
        threads = [Thread(target=bar.advance, args=(10, 2)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bar.pause()
        bar.say("a line of its own")
    out, err = capsys.readouterr()
    last = err.split("\r")[-1]
    assert not out
    assert "a line of its own\n" in err
    assert all(part in last for part in ("sampling: 100%", "40/40", "8 divergences"))


def test_what_happens_between_steps_is_shown_at_once(capsys):
    with progress_bar(1000, "image", "of 2 classifiers", show=True) as bar:
        bar.advance(0, 1)
        assert "1 of 2 classifiers" in capsys.readouterr().err


def test_silence(capsys):
    with progress_bar(40, "draw", "divergences", show=False) as bar:
        bar.stage("sampling")
        bar.advance(40, 1)
        bar.pause()
        bar.say("a line of its own")
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def clock(monkeypatch):
    """The time, as tests set it."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "time", lambda: now[0])
    return now


def test_each_stage_ends_when_the_next_begins(clock):
    watch = Stopwatch()
    with progress_bar(40, "draw", show=False, watch=watch) as bar:
        for begin, name in ((1, "reading"), (3, "sampling"), (7, "reading")):
            clock[0] = begin
            bar.stage(name)
        clock[0] = 8
    assert watch.seconds() == {"reading": 3, "sampling": 4}


def test_spans_of_work_are_counted_once_and_apart_from_their_stages(clock):
    watch = Stopwatch()
    watch.stage("finding the mode")
    watch.span("compiling", 0.5, 2.0)  # within the next one, as the traces of functions are
    watch.span("compiling", 0.0, 3.0)
    clock[0] = 4
    watch.stage("sampling")
    watch.span("compiling", 2.0, 6.0)  # in two stages, and before that of another thread ended
    clock[0] = 10
    assert watch.seconds() == {"finding the mode": 0, "sampling": 4, "compiling": 6}


def test_the_clock_leaves_out_what_passes_before_the_first_step():
    """So does a stage between others, such as compiling a second sampler."""
    with progress_bar(40, "draw", show=True) as bar:
        for _ in range(2):
            bar.stage("compiling")
            bar._bar.start_t -= 100  # as if a hundred seconds had passed
            bar._bar.last_print_t -= 100
            bar.stage("sampling")
            bar.advance(20)
            assert bar._bar.format_dict["elapsed"] < 50
