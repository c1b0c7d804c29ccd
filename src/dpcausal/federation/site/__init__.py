"""A site: a vault that answers remote, untrusted requesters, with its own policy, audit log and ledger.

`python -m dpcausal.federation.site FOLDER` answers one request, from standard input to standard output. This module
imports nothing, so that the process that starts it stays small; `Site` is in `dpcausal.federation.site.site`.
"""
