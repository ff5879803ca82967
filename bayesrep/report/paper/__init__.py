"""The figures of Engstrom et al. (2020), of any study: a module a figure.

Each has ``numbers``, plain numbers ready for JSON; ``draw``, from these to a picture; and
``figure``, both of them. `bayesrep.report.figure_names` gives the figures their names.
"""
