"""Where compiled programs are kept between processes, and by whom they may be: JAX runs them."""

import os
import subprocess
import sys
import warnings

import pytest

from bayesrep import atomic
from bayesrep.atomic import make_room, programs_cache, refuse_shared
from bayesrep.machine import cores


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's cache; the folders above tmp_path are pytest's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_folder_is_its_users_alone_from_the_beginning(home):
    old = os.umask(0o002)
    try:
        folder = programs_cache()
    finally:
        os.umask(old)
    assert folder.parent == home / "bayesrep"
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    assert programs_cache() == folder


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(home, mode):
    folder = programs_cache()
    folder.chmod(mode)
    with pytest.raises(PermissionError, match=r"^others can write to .*/programs-"):
        programs_cache()


def test_a_folder_that_others_can_replace_is_refused(home):
    folder = programs_cache()
    folder.parent.chmod(0o777)
    with pytest.raises(PermissionError, match=r"^others can write to .*/bayesrep \(chmod"):
        refuse_shared(folder)
    folder.parent.chmod(0o1777)  # as /tmp: others may add their own, and no more
    refuse_shared(folder)


def test_a_folder_of_another_user_is_refused(home, monkeypatch):
    folder = programs_cache()
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="belongs to another user$"):
        refuse_shared(folder)


def test_a_link_is_followed_to_where_others_can_write(home):
    folder = programs_cache()
    (home / "theirs").mkdir()
    (home / "theirs").chmod(0o777)
    folder.rmdir()
    folder.symlink_to(home / "theirs")
    with pytest.raises(PermissionError, match="others can write to"):
        programs_cache()


def test_what_was_not_used_for_longest_makes_room(tmp_path):
    for age, name in enumerate("abcd"):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    make_room(tmp_path.iterdir(), 25)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b"]


def test_all_folders_together_hold_the_most(home, monkeypatch):
    other = programs_cache().with_name("programs-of-another-machine")
    other.mkdir()
    for age in range(3):
        (other / str(age)).write_bytes(bytes(10))
        os.utime(other / str(age), (1e9 - age, 1e9 - age))
    monkeypatch.setattr(atomic, "LARGEST_CACHE", 25)
    programs_cache()
    assert sorted(file.name for file in other.iterdir()) == ["0", "1"]


def test_programs_for_another_number_of_cores_lie_apart(home, monkeypatch):
    """They part sums otherwise: last digits would depend on what ran before."""
    folder = programs_cache()
    monkeypatch.setattr(atomic, "cores", lambda: cores() + 1)
    assert programs_cache() != folder


PROGRAM = """
import jax, jax.numpy as jnp
from bayesrep.inference import program
program.LEAST_COMPILATION = 0
with program.kept_programs():
    print(float(jax.jit(lambda x: jnp.sin(x) + 1)(2.0)))
jax.jit(lambda x: jnp.cos(x) + 1)(2.0)  # the caller's own: not kept
"""


@pytest.fixture
def compile_here(home, monkeypatch):
    """Have this process compile the same program, where the user has decided nothing.

    Gives its value, what was warned of, and the programs that are there afterwards; JAX's settings
    of caches must be as they were.
    """
    import jax
    import jax.numpy as jnp

    from bayesrep.inference import program

    monkeypatch.setattr(program, "LEAST_COMPILATION", 0)
    names = [name for name in jax.config.values if "cache" in name]

    def compiled(where=None):
        program._configure({"jax_compilation_cache_dir": where})
        before = {name: jax.config.values[name] for name in names}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with program.kept_programs():
                # A new function, compiled as in a process that has just begun.
                value = float(jax.jit(lambda x: jnp.sin(x) + 1)(2.0))
        assert {name: jax.config.values[name] for name in names} == before
        jax.jit(lambda x: jnp.cos(x) + 1)(2.0)
        programs = sorted((home / "bayesrep").glob("programs-*/*-cache"))
        return value, [str(each.message) for each in said], programs

    set_before = jax.config.jax_compilation_cache_dir
    yield compiled
    program._configure({"jax_compilation_cache_dir": set_before})


@pytest.mark.compiles
def test_programs_are_kept_for_later_processes_and_jax_is_left_as_it_was(home, compile_here):
    settings = "JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
    inherited = {name: value for name, value in os.environ.items() if name not in settings}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**inherited, "XDG_CACHE_HOME": str(home)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    value = float(done.stdout)
    programs = sorted((home / "bayesrep").glob("programs-*/*-cache"))
    assert any("lambda" in file.name for file in programs)
    assert compile_here() == (value, [], programs)
    for file in programs:  # as one that was not written to its end
        file.write_bytes(file.read_bytes()[:100])
    again, said, _ = compile_here()
    assert again == value
    assert all("Error reading persistent compilation cache entry" in line for line in said)
    assert said


@pytest.mark.compiles
def test_a_program_that_is_half_written_is_compiled_without_a_word(home, monkeypatch, capsys):
    """As another command leaves it that is writing it, or was killed."""
    import jax
    import jax.numpy as jnp

    from bayesrep import cli
    from bayesrep.inference import program

    values = []

    def run(_):
        with program.kept_programs():
            values.append(float(jax.jit(lambda x: jnp.sin(x) + 1)(2.0)))
        return 0

    set_before = jax.config.jax_compilation_cache_dir
    monkeypatch.setattr(program, "LEAST_COMPILATION", 0)
    monkeypatch.setattr(cli, "_run", run)
    program._configure({"jax_compilation_cache_dir": None})
    warnings.simplefilter("always")  # until pytest puts its own back
    try:
        cli.main(["demo"])
        programs = list((home / "bayesrep").glob("programs-*/*-cache"))
        assert programs
        for file in programs:
            os.truncate(file, file.stat().st_size // 2)
        cli.main(["demo"])
    finally:
        program._configure({"jax_compilation_cache_dir": set_before})
    assert values[0] == values[1]
    assert capsys.readouterr().err == ""


def test_the_user_decides_where(home, tmp_path, compile_here):
    _, said, programs = compile_here(str(tmp_path / "own"))
    assert (said, programs) == ([], [])
    assert any((tmp_path / "own").iterdir())
    assert not (home / "bayesrep").exists()


def test_without_a_safe_place_nothing_is_kept_and_one_line_says_why(home, compile_here):
    (home / "bayesrep").mkdir()
    (home / "bayesrep").chmod(0o777)
    _, said, programs = compile_here()
    assert programs == []
    (line,) = said
    assert line.startswith("compiled programs are not kept: others can write to")


@pytest.mark.parametrize("way", ["own", "writable", "foreign", "linked"])
def test_a_planted_program_is_not_run(home, compile_here, monkeypatch, way):
    """It would be, where this user alone can have put it there."""
    import jax
    import jax.numpy as jnp

    from bayesrep.inference import program

    value, _, programs = compile_here()
    (kept,) = [file for file in programs if "lambda" in file.name]
    with program.kept_programs():
        assert float(jax.jit(lambda x: jnp.sin(x) + 5)(2.0)) == pytest.approx(value + 4)
    (other,) = [p for p in kept.parent.glob("*lambda*-cache") if p != kept]
    kept.write_bytes(other.read_bytes())
    folder = kept.parent
    if way == "writable":
        folder.chmod(0o777)
    elif way == "foreign":
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    elif way == "linked":
        theirs = home / "theirs"
        theirs.mkdir()
        folder.rename(theirs / "programs")
        theirs.chmod(0o777)
        folder.symlink_to(theirs / "programs")
    found, said, _ = compile_here()
    if way == "own":
        assert (found, said) == (pytest.approx(value + 4), [])
    else:
        assert found == value
        (line,) = said
        assert line.startswith("compiled programs are not kept: ")
