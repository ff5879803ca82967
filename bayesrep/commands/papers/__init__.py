"""`bayesrep papers`: what other papers measure, on a study of yours."""
