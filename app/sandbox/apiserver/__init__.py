"""The API server: objects in memory behind the HTTP API of Kubernetes.

    http ─▶ admission ─▶ rules ─▶ storage        each folder imports those to its right only

A request goes from left to right: `http` reads it, `admission` lets webhooks change or refuse it,
`rules` decides what may be stored, `storage` numbers and keeps it. A watch goes back: storage calls
its subscribers, `http` sends the lines. The controllers and the scheduler of the sandbox call
`rules` directly.

Read in this order: `storage`, `rules`, `admission`, `http`.
"""
