"""Why gangs wait: each situation with its reason, its sentence, and what gets the gang bound."""
