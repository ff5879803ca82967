"""Pickled frames and arrays of others, read without executing anything in them."""
