"""Executors that are clusters: Ray and Dask, through the same small seam as threads.

`link` is our end: futures, and a process that we talk to. `driver` is that process, the one that knows a cluster;
`on_ray` and `on_dask` say how. `working` is what a cluster's workers call.

A driver has a process to itself for three reasons. Ray ends the process that it runs in when its head is gone; both
take over signals, logs and warnings; and a head that does not answer can be given up after a time limit, whatever the
library is waiting for.
"""

from unbandit.clusters.cluster import NAMES, WAIT, Cluster, LostWorker

__all__ = ["NAMES", "WAIT", "Cluster", "LostWorker"]
