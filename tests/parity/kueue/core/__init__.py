"""Kueue's scenarios asked of the placement core: questions, answers, deviations."""
