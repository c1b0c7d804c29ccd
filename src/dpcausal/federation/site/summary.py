"""A study in short: who asks what about whom, what leaves, what it costs, what is left, and for how long."""

from datetime import UTC, datetime, timedelta

from dpcausal.federation.site.consequences import ANY_UNITS, Consequences
from dpcausal.federation.site.policy import Policy
from dpcausal.ledger import Ledger
from dpcausal.price import Price
from dpcausal.schema.treatment import table_column
from dpcausal.study.study import Study

_STOPPED = {"rejected", "withdrawn"}


def in_short(  # noqa: PLR0913 (what a person at a site knows)
    study: Study,
    policy: Policy,
    *,
    n: int | None,
    ledger: Ledger | None,
    consequences: Consequences | None,
    status: str = "undecided",
    allowed: bool = True,
    pending: Price | None = None,
    now: datetime | None = None,
) -> tuple[tuple[str, str], ...]:
    """Return what to know first about a study, as labels with sentences in plain words.

    Args:
        study: The study.
        policy: The site's policy.
        n: The site's number of units; None where it is not known.
        ledger: The site's ledger; None where it cannot be used.
        consequences: What an answer would lead to; None where there is no ledger, or the policy does not allow the
            study.
        status: What was decided about it.
        allowed: Whether the policy allows it.
        pending: What all other studies would cost that wait for a decision; None where there are none.
        now: The time of the decision; now by default.
    """
    problem = ""
    if status in _STOPPED:
        problem = f"the study is {status}"
    elif not allowed:
        problem = "the policy does not allow it"
    elif n is not None and n < policy.minimum_units:
        problem = f"the table has {n:,} units, fewer than the policy needs ({policy.minimum_units:,})"
    return (
        (
            "who asks",
            f"{study.requester}, named in this site's policy with a public key."
            if study.requester in policy.requesters
            else f"{study.requester}, who is not named in this site's policy.",
        ),
        ("what", study.question or "The study states no question."),
        ("about whom", _about(study, n)),
        ("what leaves", _leaving(study, policy, n)),
        ("what it costs", _cost(ledger, consequences, problem)),
        ("what is left", _left(ledger, None if problem else consequences, pending)),
        ("for how long", _duration(policy, now or datetime.now(UTC))),
    )


def _about(study: Study, n: int | None) -> str:
    """Return whose records are read, and which columns of them."""
    unit = study.schema.unit
    read = [*map(table_column, study.schema.columns)] + ([unit.name, unit.by] if unit else [])
    columns = ", ".join(dict.fromkeys(filter(None, read)))
    table = f"the table {study.table}" if study.table else "the table"
    whole = f"every unit of {table}" if n is None else f"all {n:,} units of {table}"
    described = f"In the requester's words: {study.eligibility}. " if study.eligibility else ""
    return f"{described}The study reads the columns {columns} of {whole}."


def _leaving(study: Study, policy: Policy, n: int | None) -> str:
    """Return how many numbers leave, and which are exact."""
    asked = study.site_questions(n or ANY_UNITS, policy.site)
    count = sum(len(each.noise(study.schema).sensitivity.coordinates) for each in asked)
    public = dict.fromkeys(name for each in asked for name in each.query.public_values)
    exact = ["the number of units"]
    exact += ["the number of units in each arm"] if study.schema.sizes_are_public else []
    exact += [*public, "the name of the data's version"]
    words = f"{count:,} number{'s' if count != 1 else ''}"
    words += f" (from a table of {ANY_UNITS:,} units)" if n is None else ""
    noisy = f"{words}, each with random noise"
    if study.secure_settings:
        noisy = f"{words}, masked, so that only the sum over all sites can be read"
    return f"One signed message: {noisy}; and, exactly, {_joined(exact)}. No record leaves."


def _cost(ledger: Ledger | None, consequences: Consequences | None, problem: str) -> str:
    """Return what an answer would take from the budget, and which part of the whole that is."""
    if problem:
        return f"Nothing: {problem}, so there is no answer."
    if ledger is None or consequences is None:
        return "Nothing: the ledger cannot be used, so there is no answer."
    if not consequences.due:
        return "Nothing: all that it asks was answered before, and the same answer is sent again."
    limit = consequences.share
    if limit and limit.after is None:
        return f"More than is left of what {limit.requester} may spend, so this site would not answer: {limit}."
    if consequences.left is None:
        return "More than is left of the budget, so this site would not answer, and nothing is spent."
    epsilon = ledger.remaining.epsilon - consequences.left.epsilon
    delta = ledger.remaining.delta - consequences.left.delta
    whole = ledger.budget.epsilon
    share = f"{epsilon / whole:.0%} of the epsilon {whole:g} that all studies of this table may spend together"
    more = f", and delta {delta:g} of {ledger.budget.delta:g}" if delta > 0 else ""
    return f"Epsilon {epsilon:g}, {share}{more}. It is spent once, when the site answers."


def _left(ledger: Ledger | None, consequences: Consequences | None, pending: Price | None) -> str:
    """Return what is left before and after, and what others would take of it."""
    if ledger is None:
        return "Unknown, because the ledger cannot be used."
    now = ledger.remaining.epsilon
    words = f"Epsilon {now:g} now"
    if consequences and consequences.left and consequences.due:
        words = f"Epsilon {consequences.left.epsilon:g} after it; {now:g} now"
    if consequences and consequences.committed.studies:
        words += f"; other approved studies will take {consequences.committed.price.epsilon:g} of it"
    if pending is not None and pending.parts:
        words += f"; other studies that wait for a decision would take at most {pending.epsilon:g}"
    if consequences and consequences.share:
        words += f"; {consequences.share}"
    return f"{words}. The budget is for the life of the table: it is not renewed each year, and cannot be raised."


def _duration(policy: Policy, now: datetime) -> str:
    """Return how long a decision counts."""
    end = "without end"
    if policy.approval_days:
        last = (now + timedelta(days=policy.approval_days)).date()
        end = f"for {policy.approval_days:,} days: until {last}, if it is given today"
    return (
        f"An approval counts {end}. A rejection counts without end, and before the answer it stops an approved study."
        " What has left cannot be taken back."
    )


def _joined(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
