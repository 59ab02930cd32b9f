"""What is written down for later: the journal of every input, a trace of each start."""
