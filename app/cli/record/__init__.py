"""`corral record`: a cluster as one file, with nothing in it that scheduling does not need.

  API server ──pages──▶ reading ──────┐                                  ┌──▶ cluster-snapshot/v1
                                      ├─▶ fields, objects ─▶ Recording ──┤      (renaming, if asked)
  Corral ──/v1/dump──▶ from_corral/ ──┘    what is kept                  └──▶ its journal beside it

`fields` has what is kept of pods and nodes, a list that README repeats; `objects` keeps of all
other kinds what their vocabulary reads. `command` is what is typed, with its `options`.
"""
