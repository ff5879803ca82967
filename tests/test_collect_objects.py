"""Candidate labels, objects and main labels: by hand, by brute force, and as published."""

from collections import Counter
from functools import partial
from itertools import combinations, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check, refusal, refused, run
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import gamma
from simulated_workers import write_answers

from bayesrep import StudyError
from bayesrep.cli import main
from bayesrep.collect import aggregate, read_collection, shortlist, wordnet
from bayesrep.collect.image_outcomes import with_clear
from bayesrep.collect.object_consensus import (
    keep_sane,
    most_probable,
    objects_of,
    partition,
    plurality,
)
from bayesrep.sources.classify_frame import read_classify_frame
from bayesrep.sources.pickles.safe_pickle import read_frame

PUBLISHED = Path(__file__).parents[2] / "shared/data/imagenet-multilabel"
TABBY, TIGER_CAT, EGYPTIAN, RETRIEVER, BALL = (
    "n02123045", "n02123159", "n02124075", "n02099601", "n04254680",
)  # fmt: skip


def counts(rows, shown=9):
    """Counts of one image: label to how many selected it; the first is its own."""
    return pl.DataFrame(
        [("v1", "1.jpg", label, not n, k, shown) for n, (label, k) in enumerate(rows.items())],
        schema=["dataset", "image", "label", "own", "selected", "shown"],
        orient="row",
    )


def left(rows, **of):
    found = shortlist(counts(rows), **of)
    return {row["label"]: row["step"] for row in found.candidates.iter_rows(named=True)}


# Which labels are left (B.1.3).


def test_the_steps_one_after_the_other():
    found = left({TABBY: 8, TIGER_CAT: 5, EGYPTIAN: 2, BALL: 1, RETRIEVER: 0})
    # Both cats are near; the ball is far; nobody sees a dog.
    assert found == {TABBY: 1, TIGER_CAT: 2, BALL: 3, EGYPTIAN: 4}


def test_the_own_label_stays_however_seldom():
    assert left({TABBY: 0, TIGER_CAT: 9}) == {TABBY: 1, TIGER_CAT: 2}


def test_no_more_than_five_by_step_four():
    cats = {f"cat {n}": 4 - n % 2 for n in range(8)}
    found = left({"own": 9, **cats})
    assert list(found.values()) == [1, 4, 4, 4, 4]
    assert set(found) == {"own", "cat 0", "cat 2", "cat 4", "cat 6"}  # those with more


def test_of_more_than_six_those_below_the_own_label_go():
    often = {f"label {n}": 5 for n in range(8)}
    assert len(left({"own": 6, **often})) == 6
    assert len(left({"own": 5, **often})) == 9  # none of them is selected less often
    assert len(left({"own": 1, **often})) == 6  # an eighth at most
    assert "own" in left({"own": 0, **often})


def test_what_becomes_of_images():
    def fate(rows, **of):
        return shortlist(counts(rows), **of).images["fate"].item()

    assert fate({"own": 9, "x": 4}) == "clear"  # more than double
    assert fate({"own": 8, "x": 4}) == "classify"
    assert fate({"own": 0, "x": 4}) == "own label never selected"
    assert fate({"own": 9, "x": 0}) == "no other label"
    few = counts({"own": 9, "x": 4})
    few = few.with_columns(
        selected=pl.Series([9, 4]), shown=pl.Series([9, 5])
    )  # five of nine judged x: what they say of it does not count
    assert shortlist(few).images["fate"].item() == "clear"
    assert shortlist(few, annotators=6).images["fate"].item() == "classify"


def test_only_images_that_go_on_are_in_what_is_written():
    both = pl.concat(
        [counts({"own": 9, "x": 1}), counts({"own": 5, "x": 5}).with_columns(image=pl.lit("2.jpg"))]
    )
    found = shortlist(both)
    assert found.to_classify["image"].to_list() == ["2.jpg", "2.jpg"]
    assert found.steps["labels"].to_list() == [2, 1, 0, 1, 0]
    assert not found.by_wordnet


def test_numbers_of_labels_may_be_given():
    names = {"tabby": TABBY, "ball": BALL}
    assert left({"tabby": 8, "ball": 1}, wnids=names) == {"tabby": 1, "ball": 3}
    with refused(StudyError, "label-without-imagenet-wnid", {"labels": ["ball"]}):
        shortlist(counts({"tabby": 8, "ball": 1}), {"tabby": TABBY})
    with refused(StudyError, "label-without-imagenet-wnid", {"labels": ["x"]}):
        shortlist(counts({TABBY: 8, "x": 1}))


def test_images_need_one_own_label():
    for own in ([False, False], [True, True]):
        table = counts({"own": 9, "x": 1}).with_columns(own=pl.Series(own))
        with refused(StudyError, "image-without-one-own-label", {"images": ["1.jpg"]}):
            shortlist(table)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=14))
@settings(deadline=None)
def test_the_rules_hold_whatever_is_selected(selected):
    labels = list(wordnet.descriptions()["label"])[:: 1000 // len(selected)][: len(selected)]
    rows = dict(zip(labels, selected, strict=True))
    found = left(rows)
    own, k = labels[0], selected[0]
    assert found[own] == 1
    assert all(rows[label] > 0 for label in found if label != own)
    excess = [label for label in found if rows[label] < k or k / 9 <= 1 / 8]
    assert len(found) <= 6 or len(found) - len(excess) >= 6
    assert (found.keys() >= {x for x in rows if rows[x] >= 5}) or len(found) >= 6
    if sum(value > 0 for value in selected[1:]) >= 4:
        assert len(found) >= 5


# Objects and main labels (section 3.2).


def test_the_papers_example():
    """Two annotators name the terrier differently: it is one object, the ball another."""
    scotch, toy, ball = 0, 1, 2
    found = objects_of([scotch, toy, ball], [[scotch, ball], [toy, ball]], [scotch, scotch])
    assert found.number == 2
    assert set(found.groups) == {(scotch, toy), (ball,)}
    assert (found.main, found.tied) == (scotch, ())


def test_ties_go_to_what_was_said_first_and_are_told():
    assert plurality([3, 1, 1, 3, 2]) == (3, True)
    found = objects_of([0, 1], [[0], [0, 1]], [1, 0])
    assert (found.number, found.main) == (1, 1)
    assert found.tied == ("number", "main")


def test_labels_selected_alone_are_in_no_group_where_there_are_several_objects():
    found = objects_of([0, 1, 2], [[0, 1], [0, 1], [2]], [0, 0, 2])
    assert sorted(label for group in found.groups for label in group) == [0, 1]


@given(
    size=st.integers(1, 6),
    number=st.integers(1, 4),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None)
def test_the_partition_is_the_best_of_all(size, number, seed):
    rng = np.random.default_rng(seed)
    tied = Counter({pair: int(rng.integers(1, 5)) for pair in combinations(range(size), 2)})
    groups, again = partition(range(size), tied, number)

    def within(places):
        return sum(tied[a, b] for a, b in combinations(range(size), 2) if places[a] == places[b])

    many = min(number, size)
    every = [p for p in product(range(many), repeat=size) if len(set(p)) == many]
    least = min(map(within, every))
    best = {frozenset(frozenset(np.flatnonzero(np.array(p) == g).tolist()) for g in range(many))
            for p in every if within(p) == least}  # fmt: skip
    assert frozenset(map(frozenset, groups)) in best
    assert again == (len(best) > 1)


@pytest.fixture(scope="module")
def published():
    file = PUBLISHED / "annotations_classify_task.pkl"
    if not file.is_file():
        pytest.skip("the published annotations are not beside the project")
    return read_frame(file)


def test_as_published(published):
    """Every image: the votes all of them, the partition wherever one is best."""
    number = main_label = decided = among = exact = 0
    images = len(published["image"])
    for row in range(images):
        selected = [list(map(int, each)) for each in published["selected"][row]]
        first = list(map(int, published["main"][row]))
        # Of partitions that are as good they have the first in the order of a Python set.
        labels = list({label: 0 for each in selected for label in each})
        found = objects_of(list(set(labels)), selected, first)
        theirs = {frozenset(map(int, group)) for group in published["objects"][row]}
        same = set(map(frozenset, found.groups)) == theirs
        number += found.number == published["num_objects"][row]
        main_label += found.main == published["main_top"][row]
        decided += "groups" not in found.tied
        among += same and "groups" not in found.tied
        exact += same
    assert images == 3380
    assert (number, main_label) == (images, images)
    assert decided == among == 3187
    assert exact >= 3370  # of the 193 ties nearly all


def test_the_published_frame_is_read(published, tmp_path, capsys):
    file = PUBLISHED / "annotations_classify_task.pkl"
    answers = read_classify_frame(file)
    table = aggregate(answers)
    images = table.unique("image", keep="first", maintain_order=True)
    assert images["image"].to_list() == list(published["image"])
    assert images["objects"].to_list() == list(map(int, published["num_objects"]))
    assert images["main_label"].to_list() == [str(label) for label in published["main_top"]]
    own = table.filter("own")
    assert own["label"].to_list() == [str(label) for label in published["imagenet_label"]]
    # 63 images on which nobody chooses the own label; no vote fails the sanity rules any more.
    assert (own["selected"] == 0).sum() == 63
    assert set(keep_sane(answers)[1].values()) == {0}
    more = ["--table", "objects", "--out", str(tmp_path / "o.csv")]
    assert main(["collect", "read", str(file), *more]) == 0
    assert "1,086 of 3,380 images" in capsys.readouterr().out
    (tmp_path / "no.pkl").write_bytes(b"no pickle")
    found = refusal(["collect", "read", tmp_path / "no.pkl", *more, "--force"])
    assert found.startswith(str(tmp_path / "no.pkl"))


# Tables.


def said(people):
    """Answers of one image: worker to (labels, main label), of the labels a, b, c."""
    return pl.DataFrame(
        [
            ("v1", "1.jpg", label, label == "a", who, label in chosen, label == first, "t-1")
            for who, (chosen, first) in people.items()
            for label in "abc"
        ],
        schema=["dataset", "image", "label", "own", "worker", "selected", "main", "task"],
        orient="row",
    )


def test_the_table_of_an_image():
    table = aggregate(said({"u": ("ab", "a"), "v": ("ab", "b"), "w": ("ac", "b"), "x": ("b", "b")}))
    assert table["label"].to_list() == ["a", "b", "c"]
    assert table["selected"].to_list() == [3, 3, 1]
    assert table["main"].to_list() == [1, 3, 0]
    assert set(table["shown"]) == {4}
    assert table["object"].to_list() == [1, 2, 2]
    assert table["names"].to_list() == [True, True, False]
    assert set(table["objects"]) == {2}
    assert set(table["main_label"]) == {"b"}
    assert table["tied"].null_count() == 3
    assert table["p_main"].sum() == pytest.approx(1)
    assert table["p_valid"].is_between(0, 1).all()


def test_probabilities_do_not_depend_on_the_order_of_answers():
    people = {"u": ("ab", "a"), "v": ("ab", "b"), "w": ("ac", "b"), "x": ("b", "b")}
    other = said({"u": ("a", "a"), "v": ("ac", "c"), "w": ("c", "c")})
    answers = pl.concat([said(people), other.with_columns(image=pl.lit("2.jpg"))])
    key = ["image", "label"]
    table = aggregate(answers).sort(key).select(*key, "p_valid", "p_main", "p_several")
    mixed = answers.sort("label", "image")  # no image's rows stand together
    again = aggregate(mixed).sort(key).select(table.columns)
    for name in ("p_valid", "p_main", "p_several"):
        assert again[name].to_list() == pytest.approx(table[name].to_list(), abs=1e-6)


def test_sanity_rules():
    people = {"u": ("ab", "a"), "v": ("", "a"), "w": ("a", "b")}
    kept, left_out = keep_sane(said(people))
    assert kept["worker"].unique().to_list() == ["u"]
    assert left_out == {
        "no label selected": 1,
        "main label not selected": 1,
        "others of workers with more than a third of these": 0,
    }
    more = [said({"v": ("a", "a")}).with_columns(task=pl.lit(f"t-{n}")) for n in (2, 3)]
    kept, left_out = keep_sane(pl.concat([said(people), *more]))
    assert len(kept) == 3 * 3  # one of three is no more than a third
    kept, left_out = keep_sane(pl.concat([said(people), more[0]]))
    assert left_out["others of workers with more than a third of these"] == 1


def test_answers_that_are_none_are_refused():
    for people in ({"u": ("", "a")}, {"u": ("ab", "")}):
        with refused(StudyError, "annotator-without-one-main-label", {"images": ["1.jpg"]}):
            aggregate(said(people))


@given(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=5), min_size=2, max_size=6))
@settings(deadline=None, max_examples=25)
def test_probabilities_of_the_largest_add_up(votes):
    found = most_probable([np.array(each) for each in votes])
    for each, p in zip(votes, found, strict=True):
        assert p.sum() == pytest.approx(1)
        order = np.argsort(each, kind="stable")
        assert (np.diff(p[order]) >= -1e-9).all()
        equal = np.equal.outer(each, each)
        assert np.allclose((equal @ p) / equal.sum(axis=1), p)


def test_the_largest_share_is_that_of_quadrature():
    """A Dirichlet's shares are of gammas: P(one is the largest) is an integral over its own."""
    votes = [np.array([5, 3, 1])] * 40 + [np.array([2, 2, 5])] * 30
    # The concentration, by the same likelihood on a grid.
    grid = np.exp(np.linspace(-4, 4, 4001))
    loss = sum(
        gammaln(3 * grid)
        - gammaln(3 * grid + 9)
        + sum(gammaln(grid + k) - gammaln(grid) for k in each)
        for each in votes
    )
    concentration = votes[0] + grid[np.argmax(loss)]

    def density(x, own):
        others = np.delete(concentration, own)
        return gamma.pdf(x, concentration[own]) * np.prod(gamma.cdf(x, others))

    wanted = [quad(density, 0, 60, args=(own,), epsabs=1e-10, limit=200)[0] for own in range(3)]
    assert sum(wanted) == pytest.approx(1, abs=1e-8)
    assert most_probable(votes)[0] == pytest.approx(wanted, abs=2e-3)


def test_from_counts_to_objects_as_it_is_typed(tmp_path, capsys):
    typed = partial(run, capsys, "collect")
    rng = np.random.default_rng(0)
    rows = [
        ("v1", f"{image}.jpg", label, n == 0, int(rng.binomial(9, (0.8, 0.6, 0.3)[n])), 9)
        for image in range(30)
        for n, label in enumerate((TABBY, RETRIEVER, BALL))
    ]
    columns = ["dataset", "image", "label", "own", "selected", "shown"]
    counted = pl.DataFrame(rows, columns, orient="row")
    places = {name: tmp_path / f"{name}.csv" for name in ("counts", "l", "a", "o")}
    counted.write_csv(places["counts"])
    read = ("read", places["counts"], "--table", "labels", "--out", places["l"])
    status, out, err = typed(*read)
    assert (status, err) == (0, "")
    assert "selected by anybody, far from the own label" in out
    asked = ("tasks", places["l"], "--kind", "classify", "--out", tmp_path / "col")
    status, out, err = typed(*asked)
    assert (status, err) == (0, "")
    write_answers(tmp_path / "said", read_collection(tmp_path / "col"))
    assert typed("read", tmp_path / "col", tmp_path / "said", "--out", places["a"])[0] == 0
    status, out, err = typed("read", places["a"], "--table", "objects", "--out", places["o"])
    assert (status, err) == (0, "")
    assert "The main label is another than the data set's own on" in out
    table = pl.read_csv(tmp_path / "o.csv")
    assert set(table["shown"]) == {9}
    words = ["collect", "read", tmp_path / "l.csv", "--table", "objects"]
    found = refusal([*words, "--out", tmp_path / "p.csv"])
    check(found, "table-lacks-columns", {"columns": ["worker"]})
    # Where no image is left there is nothing to write.
    counted.filter("own").write_csv(tmp_path / "own.csv")
    words = ["collect", "read", tmp_path / "own.csv", "--table", "labels"]
    found = refusal([*words, "--out", tmp_path / "n.csv"])
    check(found, "no-images-to-classify", {"fates": "30 images: no other label"})
    assert not (tmp_path / "n.csv").exists()


# Images that were clear stand beside those that were classified.


def fates(**of):
    rows = [("v1", f"{name}.jpg", "cat", fate) for name, fate in of.items()]
    return pl.DataFrame(rows, ["dataset", "image", "label", "fate"], orient="row")


def classified(*images):
    rows = [
        ("v1", f"{image}.jpg", label, label == "cat", str(worker), selected, label == "cat", image)
        for image in images
        for worker in range(3)
        for label, selected in (("cat", True), ("ball", worker > 0))
    ]
    names = ["dataset", "image", "label", "own", "worker", "selected", "main", "task"]
    return aggregate(pl.DataFrame(rows, names, orient="row"))


def test_clear_images_have_one_object_that_nobody_was_asked_about():
    found = with_clear(classified("a"), fates(a="classify", b="clear", c="no other label"))
    assert (found.classified, found.clear) == (1, 1)
    assert found.fates == {"classify": 1, "clear": 1, "no other label": 1}
    (row,) = found.table.filter(image="b.jpg").to_dicts()
    assert {name: value for name, value in row.items() if value is not None} == {
        "dataset": "v1", "image": "b.jpg", "label": "cat", "own": True, "object": 1,
        "names": True, "objects": 1, "main_label": "cat",
    }  # fmt: skip
    assert found.table.filter(image="a.jpg").equals(classified("a"))
    assert classified("a")["agreed"].to_list() == [2, 2]  # of three, two see two objects


def test_of_the_clear_images_as_large_a_part_is_taken_as_of_the_others():
    of = {f"a{n}": "classify" for n in range(4)} | {f"b{n}": "clear" for n in range(6)}
    found = with_clear(classified("a0", "a2"), fates(**of))
    assert (found.classified, found.clear) == (2, 3)
    taken = found.table.filter(pl.col("shown").is_null())["image"].to_list()
    assert taken == ["b0.jpg", "b2.jpg", "b4.jpg"]
    # None of a data set of which nothing is classified yet.
    other = fates(a="classify", b="clear").with_columns(dataset=pl.lit("v2"))
    both = with_clear(classified("a0", "a2"), pl.concat([fates(**of), other]))
    assert both.table.equals(found.table)
    assert (both.classified, both.clear) == (2, 3)


def test_fates_of_other_images_are_refused():
    with refused(StudyError, "classified-against-fates", {"images": ["z.jpg"]}):
        with_clear(classified("z"), fates(a="classify"))
    twice = pl.concat([fates(a="classify"), fates(a="clear")])
    with refused(StudyError, "fate-told-twice", {"images": ["a.jpg"]}):
        with_clear(classified("a"), twice)
