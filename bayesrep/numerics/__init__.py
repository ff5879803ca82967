"""Beta-binomial tables, bases and quadrature: arrays in, arrays out."""
