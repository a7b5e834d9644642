"""How quick a cluster is: the works that need nothing but a cluster, how they are timed, and the figures of them.

Owns the works (`works`), what keeps operations under way (`in_flight`), and what is made of their times (`histogram`, `figures`: pure).
`in_flight` and `histogram` import nothing of ours: scripts that drive other systems measure with the very same lines.
"""
