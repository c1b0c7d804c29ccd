"""A site: a vault that listens to strangers, behind a policy, an audit log of decisions and a ledger of its own.

`python -m dpcausal.site FOLDER` answers one request, from standard input to standard output. Kept empty, so that the
process that starts it stays small; `Site` is in `dpcausal.site.site`.
"""
