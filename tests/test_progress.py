"""What a long computation says while it runs, and that it says nothing unless asked."""

from threading import Thread

from bayesrep.progress import progress_bar


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
