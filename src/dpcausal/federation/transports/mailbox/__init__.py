"""A mailbox as a transport: a small HTTPS server that holds signed texts until those they are for fetch them.

Sites and coordinators only dial out. The server holds public keys and signed texts, and nothing else: it can delay or
drop a text, and it cannot forge one. Any number of its processes may share one database.

`calls` signs and verifies calls, `invitations` and `authority` admit sites and servers, `store` is the database,
`server` and `serve` are the server; `client`, `poller` (a site) and `transport` (a coordinator) call it.
"""

from dpcausal.errors import require_library

require_library("urllib3", "calls the mailbox", "federation")
