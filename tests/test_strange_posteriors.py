"""Posteriors and checkpoints of strangers: damaged ones are noticed, forged ones are one line."""

import io
import zipfile

import h5py
import numpy as np
import pytest
from refusals import refused

from bayesrep import PosteriorError
from bayesrep.checks import diagnose
from bayesrep.inference.checkpoint import load_block, open_checkpoint
from bayesrep.posterior import read_posterior, write_posterior
from bayesrep.posterior.files import build_posterior
from bayesrep.summary import summarize
from experiments.fuzzing import samples
from experiments.fuzzing.mutations import ODD_HEADERS


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a posterior as we write it."""
    path = tmp_path_factory.mktemp("posterior") / "posterior.nc"
    write_posterior(samples.posterior(), path)
    return path.read_bytes()


def numbers(posterior):
    return posterior.posterior["adjusted_accuracy"].values


def test_what_is_written_is_read_and_understood(tmp_path, whole):
    (tmp_path / "posterior.nc").write_bytes(whole)
    posterior = read_posterior(tmp_path / "posterior.nc")
    np.testing.assert_array_equal(numbers(posterior), numbers(samples.posterior()))
    assert len(summarize(samples.study(), posterior)) == 3
    assert diagnose(posterior).sentences


def test_any_changed_byte_is_noticed(tmp_path, whole):
    path = tmp_path / "posterior.nc"
    rng = np.random.default_rng(0)
    for at in [*rng.integers(0, len(whole), 25).tolist(), *range(-20, 0, 4)]:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with refused(PosteriorError, "posterior-file-altered", {"where": str(path)}):
            read_posterior(path)
    for size in (0, 100, len(whole) // 2, len(whole) - 200):
        path.write_bytes(whole[:size])
        with refused(PosteriorError, "posterior-file-unreadable") as error:
            read_posterior(path)
        assert str(error.value).startswith(f"{path} is not a posterior of bayesrep: ")


def test_without_a_seal_there_is_nothing_to_compare_with(tmp_path, whole):
    path = tmp_path / "posterior.nc"
    path.write_bytes(whole[:-96])
    np.testing.assert_array_equal(numbers(read_posterior(path)), numbers(samples.posterior()))


def elsewhere(file):
    del file["posterior/population_curve"]
    file["posterior/population_curve"] = h5py.ExternalLink("/etc/hostname", "/x")


def other_bytes(file):
    del file["posterior/population_curve"]
    options = {"shape": (2, 20), "dtype": "u1", "external": [("/proc/version", 0, 40)]}
    file["posterior"].create_dataset("population_curve", **options)


def in_itself(file):
    file["posterior/itself"] = file["posterior"]


def deep(file):
    group = file["posterior"]
    for _ in range(300):
        group = group.create_group("g")


def huge(file):
    options = {"shape": (10**12,), "chunks": (1000,), "dtype": "f8"}
    file["posterior"].create_dataset("huge", **options)


def record(file):
    file["posterior"].create_dataset("record", data=np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]))


def set_attribute(name, value):
    def change(file):
        file["posterior"].attrs[name] = value

    return change


def set_values(name, value):
    def change(file):
        file[name][...] = value

    return change


def no_images(file):
    del file["observed_data/replication_images"]


def cells_of_old(file):
    """What versions before wrote: a cell's name and nothing else."""
    for group in ("log_density", "observed_data"):
        for name in ("reference_group", "reference_selected", "reference_shown"):
            del file[group][name]


def hidden(file):
    """A quantity as a coordinate, which no check of quantities would see."""
    file["posterior/selection_gap"].attrs["coordinates"] = "adjusted_accuracy"


def units(file):
    file["posterior/population_curve"].attrs["units"] = "days since yesterday"


def two_fill_values(file):
    variable = file["sample_stats/energy"]
    del variable.attrs["_FillValue"]
    variable.attrs["_FillValue"] = np.array([1.0, 2.0])


def set_fill_value(file):
    """A number that would be read as none."""
    variable = file["sample_stats/energy"]
    del variable.attrs["_FillValue"]
    variable.attrs["_FillValue"] = variable[0, 0]


def two_lengths(file):
    """A variable that is shorter along a dimension than the dimension is."""
    variable = file["sample_stats/energy"]
    dims = [variable.dims[place][0] for place in range(2)]
    del file["sample_stats/energy"]
    short = file["sample_stats"].create_dataset("energy", data=np.ones((2, 10)))
    for place, scale in enumerate(dims):
        short.dims[place].attach_scale(scale)


ELSEWHERE = ("posterior-part-kept-elsewhere", {"place": "/posterior/population_curve"})
FOREIGN = "posterior-variable-attribute-foreign"
IMPOSSIBLE = "posterior-cell-counts-impossible"
NO_ACCURACY = ("adjusted-accuracy-out-of-range",)
OTHER_OPTIONS = ("posterior-options-of-other-model", {"model": "joint"})
UNREADABLE = "posterior-attribute-unreadable"
NO_IMAGES = {"group": "observed_data", "variable": "replication_images"}
HIDDEN = {"group": "posterior", "coordinate": "adjusted_accuracy"}
SELECTED, SHOWN = "log_density/reference_selected", "observed_data/reference_shown"
OF_DENSITY, OF_DATA = (
    {"where": f"{name}/reference_cell"} for name in ("log_density", "observed_data")
)
ACCURACY, CLASSIFIER = "posterior/adjusted_accuracy", "posterior/classifier"
FORGED = {
    "external link": (elsewhere, *ELSEWHERE),
    "external bytes": (other_bytes, *ELSEWHERE),
    "group in itself": (in_itself, "posterior-groups-nested"),
    "deep": (deep, "posterior-groups-nested"),
    "huge": (huge, "posterior-file-implausibly-large"),
    "record": (record, "posterior-variable-type-unknown", {"place": "/posterior/record"}),
    "fill values": (two_fill_values, FOREIGN, {"attribute": "_FillValue"}),
    "fill value": (set_fill_value, FOREIGN, {"attribute": "_FillValue"}),
    "two lengths": (two_lengths, "posterior-file-unreadable"),
    "coordinate": (hidden, "posterior-coordinate-foreign", HIDDEN),
    "decoded": (units, FOREIGN, {"attribute": "units"}),
    "variable missing": (no_images, "posterior-variable-missing", NO_IMAGES),
    "not a number": (set_values(ACCURACY, np.nan), *NO_ACCURACY),
    "out of range": (set_values(ACCURACY, 7.0), *NO_ACCURACY),
    "names twice": (set_values(CLASSIFIER, "a"), "posterior-name-repeated", {"where": CLASSIFIER}),
    "no counts": (set_values(SELECTED, 11), IMPOSSIBLE, OF_DENSITY),
    "huge counts": (set_values(SHOWN, 2**40), IMPOSSIBLE, OF_DATA),
    "cells twice": (set_values(SELECTED, 3), "posterior-cell-repeated", OF_DENSITY),
    "cells of old": (cells_of_old, "posterior-cells-undescribed"),
    "model": (set_attribute("model", "odd"), "posterior-of-unknown-model", {"model": "odd"}),
    "option": (set_attribute("options", '{"odd": 1}'), *OTHER_OPTIONS),
    "option's type": (set_attribute("options", '{"components": [[1]]}'), *OTHER_OPTIONS),
    "deep options": (set_attribute("options", "[" * 50_000), UNREADABLE, {"attribute": "options"}),
    "list": (set_attribute("schedule", "[1]"), UNREADABLE, {"attribute": "schedule"}),
    "number": (
        set_attribute("study_fingerprint", 7),
        *("posterior-attributes-missing", {"attributes": "study_fingerprint"}),
    ),
    "no Unicode": (
        set_attribute("verdict", np.bytes_(b"\xff\xfe")),
        *("posterior-attribute-not-text", {"attribute": "verdict"}),
    ),
    "type": (
        set_attribute("converged", "yes"),
        *("posterior-attribute-type-wrong", {"attribute": "converged"}),
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_posteriors_are_one_line(tmp_path, whole, case):
    change, *broken = FORGED[case]
    stream = io.BytesIO(whole[:-96])
    with h5py.File(stream, "r+") as file:
        change(file)
    path = tmp_path / "posterior.nc"
    path.write_bytes(stream.getvalue())
    with refused(PosteriorError, *broken) as error:
        read_posterior(path)
    assert str(error.value).startswith(f"{path} is not a posterior of bayesrep: ")
    if case == "huge":
        assert round(error.value.facts["gigabytes"], 1) == 7450.6


def test_groups_of_different_sizes_are_refused(tmp_path):
    every = ("chain", "draw", "classifier")
    attributes = dict(samples.posterior().posterior.attrs)
    shares = np.full((2, 20, 3), 0.5)
    energy = {"energy": (every[:2], np.ones((2, 10)))}
    groups = {"posterior": {"adjusted_accuracy": (every, shares)}, "sample_stats": energy}
    names = {"classifier": ("classifier", np.array(["a", "b", "c"]))}
    write_posterior(build_posterior(groups, names, attributes), tmp_path / "posterior.nc")
    with refused(PosteriorError, "posterior-group-sizes-differ", {"dimension": "draw"}):
        read_posterior(tmp_path / "posterior.nc")


# --- checkpoints --------------------------------------------------------------------------------


@pytest.fixture
def block(tmp_path):
    """A block in a checkpoint's folder as it should be."""
    for name, data in samples.checkpoint_files().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path / "checkpoint" / samples.BLOCK_NAME


def rezipped(path, compression=zipfile.ZIP_STORED, **arrays):
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in {**members, **arrays}.items():
            file.writestr(name, data)


def test_a_block_comes_back(block):
    for found, kept in zip(load_block(block, samples.BLOCK), samples.BLOCK, strict=True):
        np.testing.assert_array_equal(found, kept)


@pytest.mark.parametrize("header", ODD_HEADERS, ids=lambda header: repr(header[:20]))
def test_odd_headers_in_a_block_are_one_line(block, header):
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24)
    rezipped(block, **{"0.npy": data})
    with refused(PosteriorError, "checkpoint-file-damaged", {"path": str(block)}):
        load_block(block, samples.BLOCK)


@pytest.mark.parametrize(
    "odd", [np.array(["a"]), np.zeros(2, "M8[s]"), np.zeros((2, 12), "c8"), np.zeros(3)]
)
def test_arrays_of_another_kind_are_one_line(block, odd):
    rezipped(block, **{"0.npy": samples.npy(odd)})
    with refused(PosteriorError, "checkpoint-arrays-shape-differs"):
        load_block(block, samples.BLOCK)


def test_compressed_blocks_are_refused(block):
    rezipped(block, zipfile.ZIP_DEFLATED)
    why = {"reason": "its arrays are compressed, as none of ours are"}
    with refused(PosteriorError, "checkpoint-file-damaged", why):
        load_block(block, samples.BLOCK)


@pytest.mark.parametrize("odd", ["[" * 200_000, '{"seed": NaN}', '{"a": 1, "a": 1}', "7", ""])
def test_odd_manifests_are_one_line(block, odd):
    (block.parent / "checkpoint.json").write_text(odd)
    with refused(PosteriorError, "kept-work-unreadable"):
        open_checkpoint(block.parent, samples.IDENTITY)
