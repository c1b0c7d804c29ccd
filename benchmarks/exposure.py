"""How far one changed record moves an effect curve's exact answers, in units of their noise.

`python -m benchmarks.exposure --json`

The table is Dataset 1 of Schröder, Melnychuk and Feuerriegel (2025). Noise sized by influence functions is Gaussian: if
one record moves 300 answers by a vector of |move|, the release is no better than a Gaussian mechanism of mu = |move| /
sd, and that has an epsilon at any delta (Balle and Wang 2018). Nothing is sampled: models are trained with the same
seeds on both tables. The same changes are put to what the proved learners ask.
"""

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.papers.dp_cate.influence import SECOND_STAGES, Rows, finite_version, networks, places_among
from benchmarks.papers.dp_cate.printed import quiet
from benchmarks.progress import progress
from dpcausal.audit.bound import epsilon_of_mu
from dpcausal.audit.losses import Claim
from dpcausal.audit.tables import Unmetered
from dpcausal.source import RecordingSource
from dpcausal.vault.context import Answer
from dpcausal.vault.engines import Engine
from dpcausal.vault.table import open_table

Vector = NDArray[np.float64]
Table = dict[str, Vector]

N, PROFILES, MOST = 2_700, 300, 50
EPSILON, DELTA = 1.0, 1e-5
OF = ("x0", "x1")
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", undeclared=0),
    outcome=dpc.Real("score", -4, 12),
    covariates=[dpc.Real("x0", 0, 1), dpc.Real("x1", 0, 1)],
)
GUARANTEE = dpc.Guarantee(epsilon=EPSILON, delta=DELTA)

PROVED: dict[str, Any] = {
    "RLearner": dpc.RLearner(covariates=OF, basis=dpc.Spline(["x0"])),
    "KernelLearner": dpc.KernelLearner(covariates=OF),
}
"""What is proved, to compare with."""


def dataset(n: int, random: np.random.Generator) -> Table:
    """Dataset 1: two covariates, and an effect that is a wave of the first."""
    at = random.uniform(0, 1, (n, 2))
    slopes, gamma = random.uniform(0, 0.3, 2), random.uniform(0, 1, 2)
    treat = (at @ slopes >= random.uniform(-1, 1, n)).astype(float)
    effect = np.exp(2 * at[:, 0]) + 3 * np.sin(4 * at[:, 0])
    score = effect * treat + at @ gamma + random.uniform(-1, 1, n)
    return {"treat": treat, "score": score, "x0": at[:, 0], "x1": at[:, 1]}


@dataclass(frozen=True)
class Change:
    """One record that becomes another.

    Attributes:
        name: In words.
        place: Which record.
        record: What it becomes.
    """

    name: str
    place: int
    record: dict[str, float]

    def made(self, table: Table) -> Table:
        """Return the neighbouring table."""
        changed = {name: cells.copy() for name, cells in table.items()}
        for name, cell in self.record.items():
            changed[name][self.place] = cell
        return changed


class Scene:
    """A table, public profiles, and single records to change.

    Attributes:
        table: The records.
        at: The profiles.
        changes: Records that become another of the same population, and records that are put on a profile with an
            outcome at the end of its range.
    """

    def __init__(self, seed: int, each: int) -> None:
        random = np.random.default_rng(seed)
        whole = dataset(N + PROFILES + MOST, random)  # one draw, so that all of it has the same slopes
        self.table = {name: cells[:N] for name, cells in whole.items()}
        self.at = tuple((float(whole["x0"][N + i]), float(whole["x1"][N + i])) for i in range(PROFILES))
        others = ({name: float(cells[N + PROFILES + i]) for name, cells in whole.items()} for i in range(each))
        self.changes = [Change("another of the population", place, other) for place, other in enumerate(others)]
        for place, (arm, score) in zip(range(each), [(1, 12), (1, -4), (0, 12), (0, -4)] * each, strict=False):
            x0, x1 = self.at[int(random.integers(PROFILES))]
            record = {"treat": float(arm), "score": float(score), "x0": x0, "x1": x1}
            name = f"on a profile, {('control', 'treated')[arm]}, outcome {score}"
            self.changes.append(Change(name, each + place, record))


def engine_of(table: Table) -> Engine:
    """Return an engine over the table, as the vault reads it."""
    return open_table(
        pa.table({name: pa.array(cells) for name, cells in table.items()}), SCHEMA, dpc.Resources(threads=1)
    )


def influence(table: Table, at: tuple[tuple[float, float], ...], learner: str) -> tuple[Vector, float]:
    """Return what the finite version gives before noise, and the standard deviation of its noise."""
    covariates, profiles = (2 * np.array(lines) - 1 for lines in (np.column_stack([table[name] for name in OF]), at))
    bounds = SCHEMA.outcome_bounds
    rows = Rows(covariates, table["treat"], np.clip(table["score"], *bounds), bounds, places_among(SCHEMA.covariates))
    with quiet():
        return finite_version(rows, profiles, networks("R", SECOND_STAGES[learner]()), DELTA)


def moved(one: tuple[Vector, float], other: tuple[Vector, float]) -> tuple[float, float]:
    """How long the move is in standard deviations of the noise, of the larger where these differ; and their ratio."""
    move = float(np.linalg.norm(one[0] - other[0]))
    return move / max(one[1], other[1]), other[1] / one[1]


def heuristic(scene: Scene, learner: str) -> Iterator[dict[str, Any]]:
    """Yield what each change does to the heuristic."""
    base = influence(scene.table, scene.at, learner)
    sd = base[1] / EPSILON
    for change in scene.changes:
        mu, ratio = moved(base, influence(change.made(scene.table), scene.at, learner))
        yield {"change": change.name, "sd": sd, "ratio_of_sds": ratio, "mu": mu, "epsilon": epsilon_of_mu(mu, DELTA)}


def proved(scene: Scene, name: str) -> Iterator[dict[str, Any]]:
    """Yield what each change does to all that a proved learner asks, given the answers before.

    Moves of Gaussian releases add up as mu does. The score's coefficients hold their noise before they can be looked
    at; what they are charged is added in full.
    """
    base = engine_of(scene.table)
    recording = RecordingSource(Unmetered(base, SCHEMA))
    PROVED[name].estimate(recording, epsilon=EPSILON, delta=DELTA)
    hidden = sum(each.guarantee.epsilon for each in recording.releases if each.query.draws)
    told = [Claim(each.query, SCHEMA, each.guarantee) for each in recording.releases if not each.query.draws]
    answers = [claim.answer(base) for claim in told]
    for change in scene.changes:
        engine = engine_of(change.made(scene.table))
        mus = [_mu(claim, answer, claim.answer(engine)) for claim, answer in zip(told, answers, strict=True)]
        shown = {claim.query.name: mu for claim, mu in zip(told, mus, strict=True)}
        mu = math.hypot(*mus)
        yield {"change": change.name, "mus": shown, "mu": mu, "epsilon": hidden + epsilon_of_mu(mu, DELTA)}


def _mu(claim: Claim, one: Answer, other: Answer) -> float:
    steps = zip(one.in_order(claim.noise), other.in_order(claim.noise), claim.noise.scales, strict=True)
    return math.hypot(*((a - b) / float(scale or math.nan) for a, b, scale in steps))


def measure(seed: int, each: int) -> dict[str, Any]:
    """All of it."""
    scene = Scene(seed, each)
    asked = [(learner, heuristic(scene, learner)) for learner in SECOND_STAGES]
    asked += [(name, proved(scene, name)) for name in PROVED]
    results = {}
    for name, lines in asked:
        found = list(progress(lines, len(scene.changes), name))
        results[name] = {"largest_epsilon": max(line["epsilon"] for line in found), "changes": found}
    return {
        "dataset": "Dataset 1 of Schröder, Melnychuk and Feuerriegel (2025)",
        "n": N,
        "profiles": PROFILES,
        "outcome_bounds": [-4, 12],
        "claimed_epsilon": EPSILON,
        "delta": DELTA,
        "seed": seed,
        "heuristic": {f"finite version, {name}": results[name] for name in SECOND_STAGES},
        "proved": {name: results[name] for name in PROVED},
    }


def text(result: dict[str, Any]) -> Iterator[str]:
    """Yield the result as a table."""
    yield f"one record of {result['n']:,}, {result['profiles']} profiles; claimed epsilon {result['claimed_epsilon']:g}"
    for name, found in (result["heuristic"] | result["proved"]).items():
        epsilons = sorted(line["epsilon"] for line in found["changes"])
        yield f"{name:<28} epsilon {epsilons[0]:.3g} to {epsilons[-1]:.4g} over {len(epsilons)} changes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the made-up table")
    parser.add_argument(
        "--each", type=int, default=4, choices=range(1, MOST + 1), metavar=f"1..{MOST}", help="changes of each kind"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    result = measure(chosen.seed, chosen.each)
    print(json.dumps(result, indent=1, ensure_ascii=False) if chosen.json else "\n".join(text(result)))


if __name__ == "__main__":
    main()
