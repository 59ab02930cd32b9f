"""What several commands have in common.

Read `options` (flags, exit codes, how answers are written), then `api_server` (reached and listed
as kubectl does); `columns` aligns text, `logs` and `until_signal` are for commands that stay,
`completion` is for shells, `next_steps` for the demo.
"""
