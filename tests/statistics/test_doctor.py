"""What data allow to say: sound studies do not look cut."""

from bayesrep import simulate_study
from bayesrep.studies.capabilities import looks_cut


def test_sound_studies_do_not_look_cut():
    """60 simulated studies of three designs: no lowest count is shared by twenty images."""
    for seed in range(20):
        for annotators in (5, 10, 36):
            study = simulate_study(seed=seed, images=2_000, annotators=annotators, classifiers=1)
            assert looks_cut(study.reference) is None
            assert looks_cut(study.replication) is None
