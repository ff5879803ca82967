"""Readers of published data, one file a source."""
