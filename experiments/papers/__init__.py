"""Figures and printed numbers of four papers, of any study: `python -m experiments.papers`.

A figure of Engstrom et al. (2020) is a module with ``numbers``, plain numbers ready for JSON, and
``draw``, from these to a picture; `registry` gives all figures their names.
"""
