"""`bayesrep answers`: what annotators answered, which answers to count, and who gave them."""
