"""One run of the multi-site paper's experiment over real connections: NVFlare, TLS, a process for each site.

The same points as in `experiment`, which repeats them many times in one process. Here each is a study of its own, that
every site approves and answers from behind its own policy and ledger.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dpcausal as dpc
from benchmarks.papers.multi_site.experiment import ALPHAS, asked
from benchmarks.papers.multi_site.tables import Setting, protected, reference
from benchmarks.progress import progress
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.signatures import Key
from tests.support.federation_processes import Federation
from tests.support.site_folders import approve_study, make_site_folder


def measure(folder: Path, data: Path, alphas: Sequence[float] = ALPHAS) -> dict[str, Any]:
    """Return the estimate of each study, its errors, and how long it took."""
    settings = [Setting(name, "1:1:1", data) for name in ("Synth", "IHDP", "Lalonde", "IST")]
    settings += [Setting("STAR", "urbanity", data), Setting("IST", "country", data)]
    return {
        f"{each.name} {each.split}": _asked(folder / f"{each.name}-{each.split}", each, alphas) for each in settings
    }


def _asked(folder: Path, setting: Setting, alphas: Sequence[float]) -> dict[str, Any]:
    """One table's studies, one for each alpha."""
    whole = setting.table()
    method = "difference in means" if whole.randomised else "stratification"
    protects = protected(whole)[0]
    points = [{_name(each.site): each for each in asked(setting, method, alpha, protects)} for alpha in alphas]
    folder.mkdir()
    key = Key.make("anna", folder / "anna.key")
    members = {
        name: Member(make_site_folder(folder / name, name, each.table, each.schema, {"anna": key.public}))
        for name, each in points[0].items()
    }
    found = []
    with Federation(folder / "kits", {name: folder / name for name in members}) as federation:
        for alpha, point in progress(zip(alphas, points, strict=True), len(alphas), f"{setting.name} {setting.split}"):
            some = next(iter(point.values()))
            study = dpc.Study(
                name=f"{setting.name}-{alpha:g}",
                question="What is the effect?",
                requester="anna",
                schema=some.schema,
                estimator=some.estimator,
                epsilon=some.epsilon,
                delta=some.delta,
                pooling="minimum_variance",
                epsilons={name: each.epsilon for name, each in point.items()},
            )
            for name in members:
                approve_study(folder / name, study)
            start = time.monotonic()
            store = folder / f"{alpha:g}.db"
            coordinator = dpc.Coordinator(study.to_toml(), Roster(members), key, federation.transport, store=store)
            effect = coordinator.run()
            found.append(
                {
                    "alpha": alpha,
                    "seconds": round(time.monotonic() - start, 1),
                    "answered": sum(share.status == "answered" for share in effect.sites),
                    "estimate": effect.estimate,
                    "standard_error": effect.standard_error,
                    "error": abs(effect.estimate - reference(whole)),
                    "error_to_truth": abs(effect.estimate - whole.truth),
                    "counted": sum(bool(share.weight) for share in effect.sites),
                }
            )
    return {"sites": len(members), "estimator": method, "protects": protects, "studies": found}


def _name(site: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", site).strip("-")
