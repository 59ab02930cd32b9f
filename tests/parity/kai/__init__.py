"""KAI-Scheduler: what its topology plugin decides, as its own tests record it."""
