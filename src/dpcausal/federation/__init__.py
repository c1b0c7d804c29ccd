"""Many sites that keep their tables: what travels between them, and the coordinator that asks and pools.

Nothing here can see a table. A site is a room of its own, `dpcausal.site`.
"""
