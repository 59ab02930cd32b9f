"""HyperNodes made from the labels of nodes; pure, for a command as well as for a controller.

    labels of nodes ──domains.py──▶ domains by path ──names.py──▶ names ──manifests.py──▶ HyperNodes
                                          ▲                                                    │
    Volcano's configuration ──discoverer.py, with the names that Volcano gives                 │
                                     writes ◀──kept.py, with the HyperNodes that are there ◀───┘

A domain is a path of labels and not a value: rack r1 of block b1 and rack r1 of block b2 are two.
Equal labels make equal HyperNodes, in whatever order the nodes come.
"""
