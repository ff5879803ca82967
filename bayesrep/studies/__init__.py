"""A study: its rules, its cells, and its folder of Parquet files."""
