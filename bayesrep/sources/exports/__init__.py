"""Exports of annotation tools, one module a form, for `bayesrep.sources.raw_answers`."""
