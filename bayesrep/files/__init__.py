"""Readers of file formats, which keep a stranger's file from doing harm."""
