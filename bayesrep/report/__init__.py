"""What a person looks at: printed tables and figures."""
