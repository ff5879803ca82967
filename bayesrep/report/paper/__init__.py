"""The figures of Engstrom et al. (2020), of any study: a module a figure.

Each has ``numbers``, plain numbers ready for JSON, and ``draw``, from these to a picture.
`bayesrep.report.figure_registry` gives the figures their names.
"""
