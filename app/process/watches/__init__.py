"""What is watched of the watches: how far they are behind, and what is wrong with them."""
