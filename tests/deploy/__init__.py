"""What is shipped says the same everywhere."""
