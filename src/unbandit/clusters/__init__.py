"""Clusters as executors: our end (`cluster`), a process that knows one (`driver`), Ray and Dask (`backends`).

A driver has its own process for three reasons: Ray ends the process that it runs in when its head is gone; both
libraries take over signals, logs and warnings; and a head that does not answer can be given up after a time limit,
whatever the library is waiting for.
"""

from unbandit.clusters.backends import LIBRARIES, LostWorker
from unbandit.clusters.cluster import WAIT, Cluster

__all__ = ["LIBRARIES", "WAIT", "Cluster", "LostWorker"]
