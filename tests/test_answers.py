"""Answers of annotators in contexts: their intraclass correlation."""

from itertools import combinations

import numpy as np
import pytest
from contexts import answers_in_contexts
from refusals import check, refusal, refused

from bayesrep import StudyError, intraclass_correlation
from bayesrep.cli import main


def test_averages_over_pairs_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    image, context = rng.integers(0, 12, 150), rng.choice(list("abc"), 150)
    answer = rng.random(150) < 0.7
    above = below = 0.0
    for x in range(12):
        of = np.flatnonzero(image == x)
        pairs = list(combinations(of, 2))
        same = [answer[i] & answer[j] for i, j in pairs if context[i] == context[j]]
        apart = [answer[i] & answer[j] for i, j in pairs if context[i] != context[j]]
        if same and apart:
            above += np.mean(same) - np.mean(apart)
            below += answer[of].mean() - np.mean(apart)
    order = rng.permutation(150)
    found = intraclass_correlation(image[order], context[order], answer[order])
    assert found.correlation == pytest.approx(above / below, abs=1e-12)
    assert found.answers <= 150


def test_what_counts_cannot_tell_is_refused():
    image, context, answer = answers_in_contexts(0, 0.1, images=20, contexts=1)
    with refused(StudyError, "too-few-images-across-contexts", {"image_count": 0}):
        intraclass_correlation(image, context, answer)
    with refused(StudyError, "answer-entries-unequal"):
        intraclass_correlation(image, context[:-1], answer)
    with refused(StudyError, "too-few-images-across-contexts", {"image_count": 0}):
        intraclass_correlation([], [], [])
    with refused(StudyError, "answers-alike-within-every-image"):
        intraclass_correlation([1, 1, 1, 2, 2, 2], [1, 1, 2, 1, 1, 2], [1] * 6)


def test_the_command_says_it_by_data_set(tmp_path, capsys):
    path, lines = tmp_path / "answers.csv", ["dataset,image,grid,selected"]
    for dataset, rho in (("v1", 0.0), ("v2", 0.3)):
        rows = zip(*answers_in_contexts(1, rho, images=50), strict=True)
        lines += [f"{dataset},{x:03d},{c},{int(y)}" for x, c, y in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["answers", "crowd", str(path), "--context", "grid"]) == 0
    said = capsys.readouterr().out
    wanted = intraclass_correlation(*answers_in_contexts(1, 0.3, images=50)).correlation
    assert f"{wanted:.3f}" in said
    assert "v1" in said
    for words, rule, facts in (
        (["task"], "table-lacks-columns", {"columns": ["task"]}),
        (["image"], "context-column-reserved", {"context": "image"}),
        (["grid", "--aggregators"], "context-with-crowd-options", {}),
    ):
        check(refusal(["answers", "crowd", path, "--context", *words]), rule, facts)
