"""An attack on every guarantee that this package gives, and on the ways in which it could be broken.

`audit()` runs all checks and returns an `AuditReport`; `dpcausal audit` does so from the command line. Needs the extra
`audit`.

- `lower_bound`: a lower bound on epsilon from two sets of releases, of this package or of any other.
- `worst_pairs`: neighbouring tables on which careless estimators give themselves away.
- `CHECKS`: the named checks and what each is to show. That each can fail is shown by mutants in the tests.

Tables here are made up. Nothing in this room is meant for a table of real people.
"""

from dpcausal.audit.bound import Bound, lower_bound
from dpcausal.audit.finding import Finding
from dpcausal.audit.neighbours import Pair, worst_pairs
from dpcausal.audit.report import AuditReport
from dpcausal.audit.run import audit
from dpcausal.audit.tasks import CHECKS, FULL, NOT_AUDITED, QUICK

__all__ = [
    "CHECKS",
    "FULL",
    "NOT_AUDITED",
    "QUICK",
    "AuditReport",
    "Bound",
    "Finding",
    "Pair",
    "audit",
    "lower_bound",
    "worst_pairs",
]
