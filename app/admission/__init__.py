"""The webhook: pods that belong to a gang wait behind Corral's gate, mistakes are refused at once.

    AdmissionReview ──▶ review ──┬─▶ mutating/    gate, managed label, index label, role hash
                                 └─▶ validating/  every rule that is broken, with its field

A vocabulary says what the objects of its own kinds may say (`Dialect.object_rules`); here is only
whose are checked, and which errors of a change are new. `scope` says which pods are looked at, with
`namespaces` for their namespace selector. `operations` are those of a JSON patch. Both folders are
pure; `routes` is the port.
Nothing depends on the webhook: without it, or while it fails, gangs start gateless, and what is
wrong with one is found when it is read (`app.dialects`).
"""
