"""Federated analysis: sites that answer, coordinators that ask and add up, and what carries messages between them.

Only `site` can see a table.
"""

from dpcausal.errors import require_library

require_library("cryptography", "signs and masks messages", "federation")
