"""The figures of Tsipras et al. (2020) that rest on tables: of objects, of counts, of answers.

What people see is in the tables of `bayesrep collect read` (`--table objects`, and `--counts`);
each figure's number is the paper's. Figures 1, 17, 19, 25 and 26 are photographs: see `gallery`.
"""
