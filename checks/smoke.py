"""What somebody does on the first day, on an installed dpcausal: run by `checks.release` in an empty folder.

It needs what `pip install dpcausal` brings and nothing else, so that a dependency nobody declared is found here.
"""

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpcausal as dpc

TRUTH = 1.0


def table(units: int = 4_000) -> pa.Table:
    """Return a made-up table in which older people are treated more often and do worse; the effect is 1."""
    random = np.random.default_rng(0)
    ward, age = random.choice(["north", "south"], units), random.uniform(18, 90, units)
    treat = random.random(units) < 0.3 + 0.4 * (age - 18) / 72
    score = random.normal(6 + TRUTH * treat - (age - 54) / 72, 1)
    return pa.table({"treat": treat.astype(int), "score": score, "ward": ward, "age": age})


def main() -> None:
    """Ask the table in each way, write a report, and see that the ledger holds; raises where anything is amiss."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("treat", labels=("usual care", "training"), undeclared=0),
        outcome=dpc.Real("score", 0, 10),
        covariates=[dpc.Category("ward", ["north", "south"]), dpc.Real("age", 18, 90)],
    )
    ledger = dpc.Ledger.create("sqlite:///smoke.db", dpc.Budget(epsilon=40, delta=1e-5), as_of="2026-06-30")
    vault = dpc.Vault(table(), schema, ledger=ledger, as_of="2026-06-30")
    estimators = (
        dpc.DifferenceInMeans(),
        dpc.Stratification(by=["ward", dpc.Cut("age", [40, 65])]),
        dpc.RegressionAdjustment(covariates=["age"]),
        dpc.InverseWeighting(covariates=["age"]),
        dpc.DoublyRobust(covariates=["age"]),
    )
    for estimator in estimators:
        rehearsal = dpc.Rehearsal(schema, n=4_000, outcome_mean=6, outcome_sd=1)
        assert "nothing spent" in str(estimator.estimate(rehearsal, epsilon=5.0))
        effect = estimator.estimate(vault, epsilon=5.0)
        print(f"{effect.method}: {effect.estimate:.2f}")
        assert abs(effect.estimate - TRUTH) < 0.5, effect  # unadjusted it is off by .15
    curve = dpc.RLearner(covariates=["age"], basis=dpc.Polynomial(["age"])).estimate(vault, epsilon=5.0, delta=1e-6)
    print(f"curve: {curve.effect({'age': [30, 70]})}")
    study = dpc.Study(
        name="smoke",
        question="Does training raise the score?",
        schema=schema,
        estimator=dpc.RegressionAdjustment(covariates=["age"]),
        epsilon=5.0,
        eligibility="made up",
        time_zero="none",
        confounders={"age": "older people are treated more often and do worse"},
        bounds={"by": "nobody", "on": "2026-01-15", "source": "made up"},
    )
    text = study.to_toml()
    assert dpc.Study.from_toml(text).to_toml() == text
    effect = study.estimator.estimate(vault, epsilon=study.epsilon)
    assert "<html" in dpc.Report.of(effect, study, vault.ledger, date=date(2026, 9, 1)).to_html()
    vault.ledger.verify()
    print(f"spent {vault.ledger.spent}")
    # For the commands that come next.
    Path("study.toml").write_text(text, encoding="utf-8")
    pq.write_table(table(), "table.parquet")


if __name__ == "__main__":
    main()
