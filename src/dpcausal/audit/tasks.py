"""Everything that an audit does, as tasks that can run anywhere and in any order."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from dpcausal.audit.attack import check_epsilon, check_power, ranked_pairs
from dpcausal.audit.densities import Law, check_density
from dpcausal.audit.determinism import check_determinism
from dpcausal.audit.finding import Finding
from dpcausal.audit.fuzz import check_record_independence, check_shape
from dpcausal.audit.losses import Claim, claims
from dpcausal.audit.noise_distribution import check_draws, check_noise
from dpcausal.audit.opening import by_command, check_commands, check_opening, openings
from dpcausal.audit.payment import check_debit, check_refusal, check_retry
from dpcausal.audit.public_outputs import check_public_outputs
from dpcausal.audit.secure_sums import check_bundle, check_session, check_shares
from dpcausal.audit.sensitivity import check_sensitivity, check_totals
from dpcausal.audit.targets import TARGETS, Target
from dpcausal.guarantee import Guarantee

CHECKS = {
    "epsilon": "an attack on released numbers shows no more than the claimed epsilon",
    "power": "the same attack shows nearly all of epsilon where the release is as simple as can be",
    "sensitivity": "no unit moves an exact answer, or the smooth bound on its moves, further than noise pays for",
    "density": "the density of regression coefficients differs as little as is paid for, and is the one drawn from",
    "noise": "what is drawn has the claimed law and scale, independently, on a public grid",
    "draws": "all randomness of an answer comes from the vault's sampler, as its query declares",
    "determinism": "exact answers do not depend on order, threads, batches, files or engine",
    "public_outputs": "what is seen without noise is the same for neighbours",
    "opening": "opening a table, in Python or by a command, tells of no record by messages, exit codes, logs or files",
    "record_independence": "what a unit becomes depends on that unit alone, whatever the cells hold",
    "shape": "no error, warning, log line, reading or shape depends on what the cells of a small table hold",
    "debit": "the debit is in the ledger before the table is read",
    "retry": "the same request is answered once",
    "refusal": "what cannot be paid, or would be weaker than promised, is refused unread",
}
"""The named checks, and what each shows."""

NOT_AUDITED = (
    "time: how long an answer takes depends on the table, most of all where covariates nearly determine the arm",
    "readings by regressions beyond 131,072 units: one for each step of a solver, whose number depends on the table",
    "the ledger under kills, races and restarts: python -m benchmarks.ledger_faults does that",
    "OpenDP's samplers beyond some thousand draws each, the operating system's entropy, and whether processes share it",
    "several releases taken together: each transcript is one estimate; composition is proved",
    "epsilons other than 1, but for densities and smooth bounds; scores_from; tables beyond 200,000 units",
    "units with several records, but for totals, hostile tables and openings; csv files, DuckDB's own tables",
    "the noise on scores and arms inside record-level matching by itself, and how near a solver stops: tests do that",
    "a reader of the process's memory, and code inside the process",
)
"""What an audit does not look at."""

Task = Callable[[], list[Finding]]


@dataclass(frozen=True)
class Effort:
    """How much of everything.

    Attributes:
        worst: Runs on the worst pair of each target, where noise can be drawn many times at once.
        slow_worst: Runs on the worst pair where each must be made by itself.
        power: Runs of the attack on the simplest release.
        least_power: The share of epsilon that it must show.
        listed: Whether the listed pairs are ranked beside the worst of all small tables.
        variants: Whether all variants of an estimator and of a query are tried, or one.
        sizes: The sizes of tables of which all are tried.
        draws: Releases to look at one by one, for each query.
        units: The sizes of tables that are read in many ways.
        hostile: Pairs of hostile tables in each part, beyond those that are listed.
        public: On how many pairs to compare what is public; None for all.
        openings: One out of how many ways to open a table is tried, in Python and by commands.
    """

    name: str
    worst: int
    others: int
    slow_worst: int
    slow_others: int
    power: int
    least_power: float
    listed: bool
    variants: bool
    sizes: tuple[int, ...]
    draws: int
    units: tuple[int, ...]
    threads: tuple[int, ...]
    hostile: int
    parts: int
    public: int | None
    openings: tuple[int, int]


EFFORTS = {
    effort.name: effort
    for effort in (
        Effort(
            "smoke", worst=1_500, others=0, slow_worst=50, slow_others=0, power=5_000, least_power=0.5, listed=False,
            variants=False,
            sizes=(2,), draws=20, units=(300,), threads=(2,), hostile=1, parts=1, public=1, openings=(997, 3_001)
        ),
        Effort(
            "quick", worst=30_000, others=0, slow_worst=400, slow_others=0, power=30_000, least_power=0.75,
            listed=True, variants=True, sizes=(2, 3), draws=250, units=(2_000,), threads=(1, 2, 8), hostile=14, parts=2,
            public=2, openings=(67, 401)
        ),
        Effort(
            "full", worst=200_000, others=20_000, slow_worst=5_000, slow_others=400, power=200_000, least_power=0.85,
            listed=True, variants=True,
            sizes=(2, 3, 4, 5), draws=4_000, units=(5_000, 200_000), threads=(1, 2, 8), hostile=650, parts=8,
            public=None, openings=(5, 19)
        )
    )
}  # fmt: skip
"""How hard an audit tries: every check on every estimator and query once; some minutes; most of an hour."""


def tasks(effort: Effort) -> Iterator[Task]:
    """Yield all tasks, the longest first."""
    yield partial(_one, partial(check_power, effort.power, effort.least_power))
    for part in range(effort.parts):
        for check, ways, every in zip(
            (check_opening, check_commands), (openings(), by_command()), effort.openings, strict=True
        ):
            yield partial(_one, partial(check, ways[every * part :: every * effort.parts]))
        yield partial(_one, partial(check_shape, effort.hostile, part))
        yield partial(_one, partial(check_record_independence, effort.hostile, part))
    targets = TARGETS if effort.variants else _first_variants()
    for target in reversed(targets):
        yield partial(attack, target, effort)
    groups = claims() if effort.variants else _one_of_each(claims())
    for name, group in groups.items():
        yield partial(_one, partial(check_sensitivity, name, group, effort.sizes))
        yield partial(_one, partial(check_noise, name, group[0], effort.draws))
    for name, claim in _exact(groups).items():
        for size in effort.units:
            yield partial(_one, partial(check_determinism, name, claim, size, effort.threads))
    for target in targets:
        yield partial(_one, partial(check_public_outputs, target, effort.public))
        yield partial(_one, partial(check_draws, target))
    # With an outcome and without there are twice as many kinds of units.
    laws = ((Law.cube, (1, *effort.sizes[:2])), (Law.ball, (1, *effort.sizes[:2])), (Law.of_outcomes, (1, 2)))
    for (law, sizes), epsilon in itertools.product(laws, (0.1, 1.0, 4.0)):
        yield partial(_one, partial(check_density, law, epsilon, effort.slow_worst, sizes))
    for guarantee in (Guarantee(epsilon=1.0), Guarantee(epsilon=1.0, delta=1e-6)):
        yield partial(_one, partial(check_shares, guarantee, 40 * effort.draws))
    yield partial(_one, check_session)
    yield partial(_one, partial(check_bundle, 40))
    yield partial(_one, check_totals)
    yield partial(_one, partial(check_debit, targets))
    yield partial(_one, check_retry)
    yield partial(_one, check_refusal)


def _first_variants() -> tuple[Target, ...]:
    """Return the first target of each estimator."""
    return tuple({target.estimator: target for target in reversed(TARGETS)}.values())[::-1]


def _one_of_each(groups: Mapping[str, list[Claim]]) -> dict[str, list[Claim]]:
    """Return the first claim about each query."""
    names = {group[0].query.name: name for name, group in reversed(list(groups.items()))}
    return {name: groups[name][:1] for name in names.values()}


def _exact(groups: Mapping[str, list[Claim]]) -> dict[str, Claim]:
    """Return one claim for each query whose answers are exact, and one more where it has a bound of its own to find."""
    firsts = [group[0] for group in groups.values() if group[0].exact]
    return {f"{claim.query.name}, {claim.query.noise}": claim for claim in firsts}


def attack(target: Target, effort: Effort) -> list[Finding]:
    """Attack one target: on its worst pair at length, and on the others as far as the effort goes."""
    worst, others = (effort.slow_worst, effort.slow_others) if target.slow else (effort.worst, effort.others)
    first, *rest = ranked_pairs(target, effort.sizes[:2], listed=effort.listed)
    return [check_epsilon(target, *first, worst), *(check_epsilon(target, *each, others) for each in rest if others)]


def _one(check: Callable[[], Finding]) -> list[Finding]:
    return [check()]
