"""What is said once more: writes that were lost, and why a gang waits for as long as it does."""
