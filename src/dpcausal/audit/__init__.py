"""Attacks on every guarantee that this package gives.

`audit()` runs all checks and returns an `AuditReport`; `dpcausal audit` does so from the command line. Needs the extra
`audit`.

- `lower_bound`: a lower bound on epsilon from two sets of releases, of this package or of any other.
- `worst_pairs`: neighbouring tables on which careless estimators leak.
- `CHECKS`: the named checks and what each shows. Mutants in the tests show that each can fail.

Tables here are made up. Nothing in this package is meant for a table of real people.
"""

from importlib.util import find_spec

from dpcausal.errors import MissingExtraError

if find_spec("scipy") is None or find_spec("hypothesis") is None:
    raise MissingExtraError(
        problem="SciPy and hypothesis, which the audit uses, are not both installed",
        hint='pip install "dpcausal[audit]".',
    )

from dpcausal.audit.bound import Bound, lower_bound
from dpcausal.audit.finding import Finding
from dpcausal.audit.neighbours import Pair, worst_pairs
from dpcausal.audit.report import AuditReport
from dpcausal.audit.run import audit
from dpcausal.audit.tasks import CHECKS, EFFORTS, NOT_AUDITED

__all__ = [
    "CHECKS",
    "EFFORTS",
    "NOT_AUDITED",
    "AuditReport",
    "Bound",
    "Finding",
    "Pair",
    "audit",
    "lower_bound",
    "worst_pairs",
]
