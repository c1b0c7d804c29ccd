"""Sites' folders, ready to answer: key, policy, table, and a study that is approved."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from dpcausal.estimators.average import ESTIMATORS
from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site import confirmation
from dpcausal.federation.site.audit_log import AUDIT_LOG, AuditLog
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.decisions import DecisionKind, sign_decision
from dpcausal.federation.site.people import Person, identity
from dpcausal.federation.site.policy import FILE, KEY, VERSION, Policy
from dpcausal.federation.site.site_ledger import open_ledger
from dpcausal.ledger import Budget, Ledger
from dpcausal.schema.schema import Schema
from dpcausal.study.secondary import SECONDARY
from dpcausal.study.study import Study

AS_OF = "2026-06-30"


def make_site_folder(
    folder: Path, name: str, table: pa.Table, schema: Schema, requesters: Mapping[str, str], **changes: object
) -> str:
    """Make a site's folder, and return the site's public key. Changes are to its policy."""
    folder.mkdir(mode=0o700, parents=True)
    pq.write_table(table, folder / "table.parquet")
    policy: dict[str, object] = {
        "version": VERSION,
        "site": name,
        "table": "table.parquet",
        "ledger": "ledger.db",
        "as_of": AS_OF,
        "protects": schema.protects,
        "public": list(schema.public_columns),
        "columns": table.column_names,
        "estimators": [*ESTIMATORS, *SECONDARY],
        "epsilon_per_study": 100.0,
        "delta_per_study": 1e-3,
        "minimum_units": 2,
        "approvals": 1,
        "seconds": 60,
        "memory": "2 GB",
        "budget": {"epsilon": 1000.0, "delta": 0.1},
        "requesters": dict(requesters),
        **({"entry": schema.entry} if schema.entry else {}),
    }
    (folder / FILE).write_text(tomli_w.dumps(policy | changes), encoding="utf-8")
    budget = Budget(**(policy | changes)["budget"])  # type: ignore[arg-type]
    witness = str(folder / str(changes["witness"])) if "witness" in changes else None
    Ledger.create(f"sqlite:///{folder / 'ledger.db'}", budget, as_of=AS_OF, witness=witness)
    record_state(folder)
    return Key.make(name, folder / KEY).public


def record_state(folder: Path) -> None:
    """Record in a site's ledger the files that a test wrote, as if commands had written them."""
    ledger = open_ledger(folder, Policy.read(folder))
    confirmation.record_state(folder, AuditLog(folder / AUDIT_LOG), ledger)


def confirm_settings(folder: Path) -> None:
    """Confirm a site's policy after an edit, or a site that was restored."""
    Changes(folder).confirm("a person", "edited")


def allow_secure_sums(sites: Mapping[str, Path], honest: int = 2, colluding: int = 0) -> None:
    """Let sites, by name and folder, take part in secure sums with each other. Their policies must name a witness."""
    keys = {name: Key.read(name, folder / KEY).public for name, folder in sites.items()}
    terms = {"secure_sums": {"honest": honest, "colluding": colluding, "sites": keys}}
    for folder in sites.values():
        with (folder / FILE).open("a", encoding="utf-8") as file:
            file.write(f"\n{tomli_w.dumps(terms)}")
        record_state(folder)


def example_study(schema: Schema) -> Study:
    """Return a study of a difference in means, requested by anna."""
    return Study(
        name="scores",
        question="Does treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=DifferenceInMeans(),
        epsilon=1.0,
        pooling="minimum_variance",
    )


def person_key(folder: Path, name: str) -> Path:
    """Return the key file of a person at a site; a new person becomes an approver."""
    keys = folder.with_name(f"{folder.name}-people")
    keys.mkdir(exist_ok=True)
    file = keys / f"{identity(name).replace(' ', '-')}.key"
    if not file.exists():
        Changes(folder).add_person(Person(name, ("approver",), key=Key.make(name, file).public))
    return file


def signed(folder: Path, digest: str, kind: DecisionKind, by: str = "a person", why: str = "made for this") -> str:
    """Return a person's signed decision about a study."""
    key = Key.read(by, person_key(folder, by))
    policy, text = Policy.read(folder), (folder / "studies" / f"{digest}.toml")
    table = tomllib.loads(text.read_text(encoding="utf-8")).get("table", "") if text.exists() else ""
    mapping = policy.serving(table).mapping.digest
    return sign_decision(key, site=policy.site, study=digest, kind=kind, by=by, why=why, mapping=mapping)


def approve_study(folder: Path, study: Study, by: str = "a person") -> None:
    """Let somebody at a site approve a study."""
    from dpcausal.federation.site.site import Site  # noqa: PLC0415 (processes that only make folders stay small)

    site = Site(folder)
    site.decide(signed(folder, site.receive(study.to_toml()), "approve", by))
