"""The books of the year: what every ledger, log and status must say, and whether it does."""

import json
import time
from collections import Counter, defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

import dpcausal as dpc
from benchmarks.federation_year.plan import SITES, Asked
from dpcausal.errors import RefusedError
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.status import federation_status
from dpcausal.federation.operation.health import BACKUP_DAYS, DAYS_LEFT, LEVELS, Status
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.site.audit_log import AuditLog
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from dpcausal.federation.transports.mailbox.authority import SERVER, last_day
from dpcausal.release import receipts_in

if TYPE_CHECKING:
    from benchmarks.federation_year.year import Year

_PATIENCE = 100.0


class Books:
    """What is expected of each site and each study, kept beside what they say themselves."""

    def __init__(self, year: "Year") -> None:
        self._year = year
        self._expected: dict[str, set[str]] = {}
        self._paid: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self._effects: dict[str, float] = {}
        self._backups: dict[str, int] = {}
        self._at_backup: dict[str, float] = {}
        self._checks = self._silent = 0
        self.withdrawn: set[str] = set()

    def begin(self, asked: Asked, study: dpc.Study, absent: str) -> None:
        """Note which sites have to answer a study now."""
        on = {name for name in asked.sites if self._year.sites[name].is_on}
        self._expected[study.digest] = on - {absent}

    def opened(self, study: dpc.Study, sites: set[str]) -> None:
        """Note which sites are in a secure sum: it was opened without those that were silent for too long."""
        self._silent += len(self._expected[study.digest] - sites)
        self._expected[study.digest] = sites

    def waits_for(self, study: dpc.Study, site: str) -> None:
        """Note that a site has to answer, too."""
        self._expected[study.digest].add(site)

    def missing(self, study: dpc.Study) -> set[str]:
        """Return the sites that have to answer a study and have not, among those that are on."""
        self._read(study)
        if study.digest in self.withdrawn or study.digest not in self._expected:
            return set()
        answered = {site for site, digest in self._paid if digest == study.digest}
        return {name for name in self._expected[study.digest] - answered if self._year.sites[name].is_on}

    def _read(self, study: dpc.Study) -> None:
        """Write down the receipts that the coordinator holds: by site and study, once for each request."""
        store = Requests(self._year.workspace.store)
        for text in store.texts_of(study.digest):
            request = Request.from_json(claimed_body(text))
            for site, message, _ in store.messages(request.id):
                found = Message.from_json(claimed_body(message))
                if found.code == "answered" and request.ask in ("releases", "masked"):
                    price = sum(receipt.epsilon for receipt in receipts_in(asdict(found)))
                    self._paid[site, study.digest][json.dumps([str(r) for r in receipts_in(asdict(found))])] = price

    def effect(self, study: dpc.Study, coordinator: dpc.Coordinator) -> None:
        """Compute the effect from what is stored; the sites in it are those that paid."""
        try:
            effect = coordinator.run()
        except RefusedError as error:
            raise AssertionError(f"{study.name} has no effect: {error}") from None
        self._effects[study.digest] = effect.estimate

    def paid(self, site: str) -> float:
        """Return what a site was paid for, by the receipts at the coordinator."""
        return sum(sum(prices.values()) for (name, _), prices in self._paid.items() if name == site)

    def check_unpaid(self, study: dpc.Study, site: str) -> None:
        """Check that a site has paid nothing for a study."""
        entries = Site(self._year.sites[site].folder).ledger().entries()
        assert not [each for each in entries if each.kind == "debit" and each.content.get("study") == study.digest]
        self._checks += 1

    def backed_up(self, what: str, *, never: bool = False) -> None:
        """Note a backup, and what the site had paid for until then; or that the folder has had none."""
        if never:
            self._backups.pop(what, None)
            return
        self._backups[what] = self._year.clock.day
        self._at_backup[what] = self.paid(what)

    def lost(self, site: str) -> float:
        """Return what a site paid for after its last backup."""
        return round(self.paid(site) - self._at_backup[site], 9)

    # Whether each status says what is true.

    def expect(self, site: str, check: str, level: str) -> None:
        """Check what the status of a site says."""
        status = site_status(self._year.sites[site].folder)
        _same(status, check, level)
        self._checks += 1

    def expect_soon(self, site: str, check: str, level: str) -> None:
        """Check what the status of a site says before long: a process needs a minute to notice."""
        _until(lambda: _level(site_status(self._year.sites[site].folder), check) == level)
        self.expect(site, check, level)

    def expect_certificate(self, level: str) -> None:
        """Check what the coordinator's status says of the mailbox's certificate."""
        _same(federation_status(self._year.server.folder), "certificate_mailbox", level)
        self._checks += 1

    def expect_unreachable(self) -> None:
        """Check that sites do not talk to a server whose certificate has expired, and say so."""
        for name in SITES:
            if self._year.sites[name].is_on and not self._year.sites[name].older:
                self.expect_soon(name, "mailbox", "attention")

    def look(self) -> None:
        """Check each site's and the coordinator's status at the end of a quarter."""
        for name, keeper in self._year.sites.items():
            if keeper.is_on and not keeper.older:
                _until(lambda keeper=keeper: _level(site_status(keeper.folder), "mailbox") == "healthy")
            status = site_status(keeper.folder)
            if not keeper.older:  # it left no word of its polls
                _same(status, "polling", "healthy" if keeper.is_on else "broken")
            for check in ("ledger", "audit_log", "confirmed", "key"):
                _same(status, check, "healthy")
            for study in self._year.studies.values():
                self._read(study)
            spent = _value(status, "budget")["spent"]["epsilon"]
            assert spent == pytest.approx(self.paid(name)), (name, spent, self.paid(name))
            undecided = [each for each in Site(keeper.folder).studies() if each.waits]
            assert _value(status, "waiting") == len(undecided)
            _same(status, "waiting", "attention" if undecided else "healthy")
            assert keeper.rotated in next(each.words for each in status.checks if each.name == "key")
            self._backup(status, name)
            self._checks += 9
        status = federation_status(self._year.server.folder)
        _same(status, "serving_mailbox", "healthy")
        days = (last_day(self._year.server.folder / "mailbox" / SERVER) - self._year.clock.now).days
        assert _value(status, "certificate_mailbox") == days
        _same(status, "certificate_mailbox", "attention" if days < DAYS_LEFT else "healthy")
        _same(status, "requests", "healthy")
        self._backup(status, "workspace")

    def _backup(self, status: Status, what: str) -> None:
        made = self._backups.get(what)
        fresh = made is not None and self._year.clock.day - made < BACKUP_DAYS
        _same(status, "backup", "healthy" if fresh else "attention")

    # The end of the year.

    def result(self) -> dict[str, Any]:
        """Return what was found, after every book was closed."""
        for study in self._year.studies.values():
            self._read(study)
        for asked in self._year.asked:
            study = self._year.studies[asked.place]
            answered = {site for site, digest in self._paid if digest == study.digest}
            assert answered == self._expected[study.digest], (study.name, asked, answered, self._expected[study.digest])
            assert study.digest in self._effects
        sites = {name: self._close(name) for name in SITES}
        return {
            "days": self._year.clock.day,
            "studies": len(self._year.asked),
            "effects": len(self._effects),
            "events": dict(sorted(self._year.done.items())),
            "checks_of_statuses": self._checks,
            "sites_left_out_of_open_sums": self._silent,
            "sites": sites,
        }

    def _close(self, name: str) -> dict[str, Any]:
        """Compare the ledger and the audit log of a site with what the coordinator holds."""
        keeper = self._year.sites[name]
        folder, ledger = keeper.folder, Site(keeper.folder).ledger()
        ledger.verify()
        entries = ledger.entries()
        kinds = Counter(each.kind for each in entries)
        debited = Counter(each.request for each in entries if each.kind == "debit")
        assert set(debited.values()) <= {1}, f"{name} paid twice"
        assert ledger.spent.epsilon == pytest.approx(self.paid(name)), (name, ledger.spent.epsilon, self.paid(name))
        paid = {each.content["study"] for each in entries if each.kind == "debit"}
        known = {digest for site, digest in self._paid if site == name}
        assert paid <= known, f"{name} paid for nothing"
        log = AuditLog(folder / "audit_log.jsonl").entries()
        for digest in self._year.books.withdrawn - known:
            assert Site(folder).status(digest) in ("withdrawn", "undecided", "approved")
        return {
            "version": Policy.read(folder).as_of,
            "answered": len(known),
            "debits": kinds["debit"],
            "restores": kinds["restore"],
            "spent": round(ledger.spent.epsilon, 6),
            "audit_log": len(log),
        }


def _same(status: Status, check: str, level: str) -> None:
    found = next((each for each in status.checks if each.name == check), None)
    assert found is not None, f"{status.name} has no {check}"
    assert LEVELS[found.level] == level, f"{status.name}: {check} is {LEVELS[found.level]}, not {level}: {found.words}"


def _level(status: Status, check: str) -> str:
    return next((LEVELS[each.level] for each in status.checks if each.name == check), "")


def _value(status: Status, check: str) -> Any:  # noqa: ANN401 (of any check)
    return next(each.value for each in status.checks if each.name == check)


def _until(holds: Any) -> None:  # noqa: ANN401
    end = time.monotonic() + _PATIENCE
    while not holds() and time.monotonic() < end:
        time.sleep(0.5)
