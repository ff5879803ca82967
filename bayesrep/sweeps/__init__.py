"""Many runs of a grid: which they are, making what is missing of them, and what they come to."""
