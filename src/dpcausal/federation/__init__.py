"""Federated analysis: the protocol between sites, signatures, transports, and the coordinator that asks and pools.

Nothing here can see a table. A site is in a package of its own, `dpcausal.site`.
"""
