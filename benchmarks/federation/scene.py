"""Three hospitals, a server and a coordinator, all real processes, and a way to put studies to them."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.signatures import Key
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.federation_processes import SERVER, Federation, holding
from tests.support.site_folders import approve_study, make_site_folder

SITES = ("north", "south", "west")
UNITS = 400
PATIENT = "patient-4711-of-{}"
TIMEOUT = 45.0

# Runs first in every process of a site; what it then does is in a file that a fault puts into the site's folder.
HOOK = """
import os
fault = os.path.join(os.environ.get("DPCAUSAL_SITE", "/nowhere"), "fault.py")
if os.path.exists(fault):
    with open(fault) as file:
        exec(file.read())
"""


@dataclass
class Scene:
    """A federation, and a way to put a study to it.

    Attributes:
        federation: The real processes.
        folder: Where studies' stores go.
        key: The coordinator's.
        roster: Its sites.
        asked: How many studies there were so far.
    """

    federation: Federation
    folder: Path
    key: Key
    roster: Roster
    asked: int = field(default=0)

    def study(self, **changes: Any) -> dpc.Study:  # noqa: ANN401 (parts of a study)
        """Return a new study, at a price that no other has."""
        self.asked += 1
        study = dpc.Study(
            name=f"study {self.asked}",
            question="Does treatment raise the score?",
            requester="anna",
            schema=standard_schema(),
            estimator=dpc.DifferenceInMeans(),
            epsilon=round(0.1 + self.asked / 1000, 6),
            pooling="minimum_variance",
        )
        return replace(study, **changes)

    def approved(self, **changes: Any) -> dpc.Study:  # noqa: ANN401
        """Return the same, approved by all sites."""
        study = self.study(**changes)
        for site in SITES:
            approve_study(self.federation.sites[site], study)
        return study

    def run(self, study: dpc.Study, *, timeout: float = TIMEOUT, roster: Roster | None = None) -> dict[str, str]:
        """Return what each site did, and the effect under `effect`; a run goes on from the study's store."""
        coordinator = dpc.Coordinator(
            study.to_toml(),
            roster or self.roster,
            self.key,
            self.federation.transport,
            store=self.folder / f"{study.name}.db",
            timeout=timeout,
            attempts=2,
        )
        try:
            effect = coordinator.run()
        except RefusedError as refused:
            return {"effect": "", "refused": str(refused)}
        return {share.site: share.status for share in effect.sites} | {"effect": effect.to_json()}

    def running(self, study: dpc.Study, during: Callable[[], None], **options: Any) -> dict[str, str]:  # noqa: ANN401
        """Return the same, while something happens."""
        found: dict[str, str] = {}
        requester = threading.Thread(target=lambda: found.update(self.run(study, **options)))
        requester.start()
        during()
        requester.join()
        return found

    @contextmanager
    def fault(self, site: str, code: str) -> Iterator[Path]:
        """Have a site misbehave; gives the file that it makes when it has."""
        folder = self.federation.sites[site]
        (folder / "fault.py").write_text(code, encoding="utf-8")
        try:
            yield folder / "reached"
        finally:
            self.mended(site)

    def mended(self, site: str) -> None:
        """Have a site behave again."""
        for name in ("fault.py", "reached"):
            (self.federation.sites[site] / name).unlink(missing_ok=True)

    def ledger(self, site: str) -> dict[float, list[str]]:
        """Return what each price's requests went through in a site's ledger, which is verified by reading it."""
        kinds: dict[float, list[str]] = {}
        prices: dict[str, float] = {}
        for entry in dpc.Ledger(f"sqlite:///{self.federation.sites[site] / 'ledger.db'}").entries():
            if entry.kind == "grant":
                prices[entry.request] = sum(event.epsilon for event in entry.events)
            if entry.request in prices:
                kinds.setdefault(prices[entry.request], []).append(entry.kind)
        return kinds

    def outside_with(self, text: str) -> list[str]:
        """Return the files of server, requester and coordinator that hold a text."""
        places = self.federation.coordinator, self.federation.log(SERVER), *self.folder.glob("*.db*")
        return [str(file.relative_to(self.folder)) for file in holding(text, *places)]

    def spent(self, study: dpc.Study) -> dict[str, str]:
        """Return what a study went through in each site's ledger."""
        return {site: " ".join(self.ledger(site).get(study.epsilon, [])) or "nothing" for site in SITES}


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    """Three hospitals, a server and a coordinator, all real, on loopback."""
    key = Key.make("anna", folder / "anna.key")
    schema = standard_schema()
    members = {}
    for place, site in enumerate(SITES):
        names = pa.array([PATIENT.format(site)] * (UNITS + place))
        table = synthetic_table(schema, UNITS + place, seed=place).append_column("name", names)
        members[site] = Member(
            make_site_folder(
                folder / site, site, table, schema, {"anna": key.public}, seconds=10, epsilon_per_study=50.0
            ),
            units=len(table),
        )
        (folder / site / "patient").write_text(PATIENT.format(site), encoding="utf-8")
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    federation = Federation(folder / "kits", {site: folder / site for site in SITES})
    path = os.pathsep.join(filter(None, (str(folder / "hook"), os.environ.get("PYTHONPATH"))))
    with mock.patch.dict(os.environ, PYTHONPATH=path), federation:
        yield Scene(federation, folder, key, Roster(members))
