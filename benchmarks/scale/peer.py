"""The same effect without privacy, by a library that holds all units in memory: run by an interpreter that has it.

`python benchmarks/scale/peer.py FOLDER COVARIATES` reads parquet files with the columns treat, y, x0, x1, … and prints
what an estimate took, from files to effect. It needs numpy, pyarrow and either DoubleML or EconML. Linear and logistic
regressions, two folds: the least work that either allows.
"""

import importlib
import importlib.util
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds


def read(folder: str, covariates: int) -> tuple[Any, Any, Any]:
    """Outcomes, arms and covariates, missing values counted as the middle of their range."""
    names = [f"x{place}" for place in range(covariates)]
    table = ds.dataset(folder, format="parquet").to_table(columns=["treat", "y", *names])
    arms = (table["treat"].to_numpy() == 1).astype(np.int64)
    outcomes = np.clip(np.nan_to_num(table["y"].to_numpy().astype(np.float64), nan=5.0), 0, 10)
    features = np.empty((table.num_rows, covariates))
    for place, name in enumerate(names):
        features[:, place] = np.clip(np.nan_to_num(table[name].to_numpy(), nan=0.0), -3, 3)
    return outcomes, arms, features


def by_doubleml(outcomes: Any, arms: Any, features: Any) -> tuple[float, float]:  # noqa: ANN401
    doubleml = importlib.import_module("doubleml")
    from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: PLC0415

    data = doubleml.DoubleMLData.from_arrays(features, outcomes, arms)
    fitted = doubleml.DoubleMLIRM(data, LinearRegression(), LogisticRegression(), n_folds=2).fit(
        store_predictions=False
    )
    return float(fitted.coef[0]), float(fitted.se[0])


def by_econml(outcomes: Any, arms: Any, features: Any) -> tuple[float, float]:  # noqa: ANN401
    econml = importlib.import_module("econml.dr")
    from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: PLC0415

    learner = econml.LinearDRLearner(
        model_propensity=LogisticRegression(), model_regression=LinearRegression(), cv=2, random_state=0
    )
    found = learner.fit(outcomes, arms, W=features).intercept__inference(T=1)
    return float(found.point_estimate), float(found.stderr)


PEERS = {"doubleml": by_doubleml, "econml": by_econml}


def main() -> None:
    folder, covariates = sys.argv[1], int(sys.argv[2])
    name = next(name for name in PEERS if importlib.util.find_spec(name))
    few = np.random.default_rng(0).standard_normal((1_000, covariates + 1))
    PEERS[name](few[:, 0], np.arange(1_000) % 2, few[:, 1:])  # so that all it needs is loaded
    wall, cpu = time.perf_counter(), time.process_time()
    effect, error = PEERS[name](*read(folder, covariates))
    cost = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    cost["peak"] = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    value = {"peer": f"{name} {version(name)}", "effect": effect, "standard_error": error}
    print(json.dumps(cost | {"value": value}))


if __name__ == "__main__":
    main()
