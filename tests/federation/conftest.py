"""Real sites in one process, honest and dishonest."""

import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dpcausal import Coordinator, DifferenceInMeans, Study
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.protocol.transport import LocalTransport, parted
from dpcausal.federation.site.policy import KEY
from dpcausal.federation.site.site import Site
from dpcausal.schema.schema import Schema
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.copies import fill, is_as_made
from tests.support.site_folders import allow_secure_sums, approve_study, make_site_folder, person_key

Answerer = Callable[[str], str]


@dataclass
class Federation:
    """Some sites, and a requester called anna."""

    folder: Path
    tables: Mapping[str, pa.Table]
    schema: Schema
    asked: list[str] = field(default_factory=list)
    """The sites that were asked, in order."""
    rule: str = "additive"
    """How the budgets of sites add up prices."""

    def __post_init__(self) -> None:
        self._made_of = pickle.dumps((dict(self.tables), self.schema, self.rule))
        fill(self.folder, self._made_of, self._make)
        self.anna = Key.read("anna", self.folder / "anna.key")
        self.roster = Roster({name: Member(self.key(name).public) for name in self.tables})
        self.sites: dict[str, Answerer] = {name: self.honest(name) for name in self.tables}

    def _make(self) -> None:
        anna = Key.make("anna", self.folder / "anna.key")
        requesters, budget = {"anna": anna.public}, {"epsilon": 1000.0, "delta": 0.1, "rule": self.rule}
        for name, table in self.tables.items():
            make_site_folder(
                self.folder / name, name, table, self.schema, requesters, budget=budget, witness="witness.log"
            )
        allow_secure_sums({name: self.folder / name for name in self.tables})
        for name in self.tables:
            person_key(self.folder / name, "a person")

    def honest(self, name: str) -> Answerer:
        """Return the honest answerer of a site."""
        return Site(self.folder / name).answer

    def study(self, **changes: Any) -> Study:
        """Return a study that all sites have approved."""
        usual: dict[str, Any] = {
            "name": "scores",
            "question": "Does treatment raise the score?",
            "requester": "anna",
            "schema": self.schema,
            "estimator": DifferenceInMeans(),
            "epsilon": 1.0,
            "pooling": "sums",
        }
        study = Study(**usual | changes)
        if is_as_made(self.folder, self._made_of):
            fill(self.folder, (self._made_of, study.text), lambda: self._approve(study))
        else:
            self._approve(study)
        return study

    def _approve(self, study: Study) -> None:
        for name in self.tables:
            approve_study(self.folder / name, study)

    def coordinator(self, study: Study, **changes: Any) -> Coordinator:
        """Return anna's coordinator, without a timeout, and with a new store unless one is given."""
        transport = LocalTransport({name: self._listening(name) for name in self.tables})
        usual: dict[str, Any] = {"roster": self.roster, "transport": transport, "store": ":memory:", "timeout": 0.0}
        return Coordinator(study.to_toml(), key=self.anna, **usual | changes)

    def _listening(self, name: str) -> Answerer:
        def answer(request: str) -> str:
            self.asked.append(name)
            return self.sites[name](request)

        return answer

    def key(self, name: str) -> Key:
        return Key.read(name, self.folder / name / KEY)

    def refuse(self, name: str, code: str) -> None:
        """Let a site answer everything with a code."""
        self.lie(name, lambda body: body.update(code=code, n=None, arm_sizes=None, as_of=None, answer=None))

    def lie(self, name: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Let a site sign a changed message."""
        honest, key = self.honest(name), self.key(name)

        def answer(request: str) -> str:
            body = json.loads(claimed_body(honest(request)))
            change(body)
            return key.seal(json.dumps(body, sort_keys=True))

        self.sites[name] = answer


def always(text: Any) -> Answerer:
    """Return a site that answers every request with one text."""
    return lambda _: text


def message_in(sealed: str) -> Message:
    """Return the message in a signed text."""
    return Message.from_json(claimed_body(sealed))


def request_in(text: str) -> Request:
    """Return the request in the text that a site gets."""
    return Request.from_json(claimed_body(parted(text)[0]))


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    """North, south and west, of 300, 200 and 100 units."""
    schema = standard_schema()
    tables = {"north": (300, 1), "south": (200, 2), "west": (100, 3)}
    return Federation(tmp_path, {name: synthetic_table(schema, n, seed) for name, (n, seed) in tables.items()}, schema)
