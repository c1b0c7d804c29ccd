"""The answers in a ledger: each is stored once, after its debit, and the first one stands."""

import json
from typing import Any

from dpcausal.errors import LedgerError
from dpcausal.ledger import refusals
from dpcausal.ledger.allocation import Allocation
from dpcausal.ledger.journal import Journal
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.queries import queries_asked


class Answers(Journal[RunningTotal]):
    """The part of a ledger that stores answers."""

    allocation: Allocation | None

    def store(self, request: str, release: str) -> str:
        """Store the answer to a request, and return the stored answer: always the first one."""
        with self._transaction() as connection:
            made = self._request(connection, request)
            if "release" in made:
                return made["release"].answer
            if "debit" not in made:
                raise LedgerError(
                    expected="a request that was debited", got="one that was not", hint="debit it before the answer."
                )
            if self.allocation:  # what was paid for in one period is not told in another
                self.allocation.check_day()
            self._append(connection, "release", request, {"release": json.loads(release)})
            return release

    def store_look(self, schedule: str, look: str, previous: str | None, release: str) -> str:
        """Store the answer at one look of a schedule, and return the stored answer: always the first one.

        Args:
            schedule: The request that was granted and debited for all looks together.
            look: The request of this look.
            previous: The request of the look before it, which must be answered; None for the first.
        """
        with self._transaction() as connection:
            made = self._request(connection, look)
            if "look" in made:
                return made["look"].answer
            if self.allocation:  # what was paid for in one period is not told in another
                self.allocation.check_day()
            if "debit" not in self._request(connection, schedule):
                raise LedgerError(
                    expected="a schedule that was debited", got="one that was not", hint="debit it before the answer."
                )
            if previous is not None and "look" not in self._request(connection, previous):
                raise refusals.out_of_order()
            content = {"schedule": schedule, "previous": previous, "release": json.loads(release)}
            self._append(connection, "look", look, content)
            return release

    def store_confirmation(self, session: str, summed: str) -> str:
        """Record which sum a site confirms in a session of secure sums, and return the recorded one: always the first.

        It has no price. It is in the chain, so that a session put back from an older copy cannot confirm another sum.

        Raises:
            LedgerError: If the session has no stored numbers.
        """
        with self._transaction() as connection:
            made = self._request(connection, session)
            if "confirm" in made:
                return str(made["confirm"].content["summed"])
            if "release" not in made:
                raise LedgerError(
                    expected="a session whose masked numbers are stored",
                    got="another",
                    hint="the rounds of a secure sum come in order; confirm follows masked.",
                )
            self._append(connection, "confirm", session, {"summed": summed})
            return summed

    @property
    def last_restore(self) -> str:
        """The digest of the entry that last recorded a restore of an older copy; empty where there is none."""
        with self._transaction() as connection:
            restores = self._store.entries_of_kind(connection, "restore")
            return restores[-1].digest if restores else ""

    def stored(self, request: str) -> str | None:
        """Return the stored answer to a request or to a look, or None."""
        with self._transaction() as connection:
            made = self._request(connection, request)
            found = made.get("release") or made.get("look")
            return found.answer if found else None

    def answered(self, query: str) -> tuple[dict[str, Any], ...]:
        """Return the questions with a query of this name that have a stored answer, the oldest first."""
        with self._transaction() as connection:
            granted = self._store.entries_of_kind(connection, "grant", containing=json.dumps(query))
            return tuple(
                question
                for entry in granted
                if queries_asked(question := entry.content["question"]) == (query,)
                and "release" in self._request(connection, entry.request)
            )

    def is_debited(self, request: str) -> bool:
        """Return whether a request was paid for."""
        with self._transaction() as connection:
            return "debit" in self._request(connection, request)

    def is_debited_for(self, study: str) -> bool:
        """Return whether anything was paid for the study with this digest."""
        with self._transaction() as connection:
            debits = self._store.entries_of_kind(connection, "debit", containing=json.dumps(study))
            return any(entry.content.get("study") == study for entry in debits)
