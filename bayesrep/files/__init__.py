"""Formats of files, read so that a stranger's file does no harm; what is in them is for others."""
