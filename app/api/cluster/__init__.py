"""The nodes, for people: `topology` in sums, `map` one by one."""
