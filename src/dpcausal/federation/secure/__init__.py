"""Secure sums: masks that cancel in a sum, so that a coordinator opens the total of many sites and nothing else.

The protocol is that of Bonawitz et al. (2017) with signed, one-time exchanges. Nothing here reads a file or sends a
message: the caller stores sessions and verifies signatures. `docs/proofs/secure_sums.md` proves what each party learns.
"""

from dpcausal.errors import require_library

require_library("shamirs", "shares secrets among sites", "federation")
