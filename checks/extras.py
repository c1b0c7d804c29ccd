"""A small real use of each extra, on an installed dpcausal: `checks.release` runs it where only that extra is.

`python extras.py NAME` prints what was done. It needs what `pip install "dpcausal[NAME]"` brings and nothing else, so
that a library which nobody declared is found here. PostgreSQL and an object store are named by the environment.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpcausal as dpc

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", undeclared=0),
    outcome=dpc.Real("score", 0, 10, missing=5),
    covariates=[dpc.Real("age", 18, 90)],
)


def table(units: int = 2_000) -> pa.Table:
    """Return a simulated trial; the effect is 1."""
    random = np.random.default_rng(0)
    treat = random.integers(0, 2, units)
    return pa.table({"treat": treat, "score": random.normal(5 + treat, 1, units), "age": random.uniform(18, 90, units)})


def vault(place: Any = None, ledger: str = "sqlite://") -> dpc.Vault:  # noqa: ANN401 (whatever a vault opens)
    """Return a vault on the trial, or on the same table elsewhere."""
    return dpc.Vault(
        table() if place is None else place, SCHEMA, ledger=ledger, budget=dpc.Budget(epsilon=20, delta=1e-5)
    )


def estimated(place: Any = None, estimator: Any = None) -> str:  # noqa: ANN401
    """Return the effect that an estimator finds; it must be near the truth."""
    effect = (estimator or dpc.DifferenceInMeans()).estimate(vault(place), epsilon=8.0)
    assert abs(effect.estimate - 1) < 0.5, effect
    return f"{effect.method}: {effect.estimate:.2f}"


def dpcausal(*words: object) -> str:
    """Run the command, and return what it prints."""
    program = Path(sys.executable).with_name("dpcausal")
    done = subprocess.run([program, *map(str, words)], check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        sys.exit(f"dpcausal {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def accounting() -> str:
    """Account tightly for a ledger."""
    asked = vault()
    dpc.DifferenceInMeans().estimate(asked, epsilon=1.0)
    return f"tight epsilon {asked.ledger.tight_epsilon(1e-5):.3f} of {asked.ledger.spent}"


def audit() -> str:
    """Attack noise, and open hostile tables that Hypothesis makes."""
    from dpcausal.audit import lower_bound  # noqa: PLC0415 (here an extra, like all that follow)
    from dpcausal.audit.fuzz import check_record_independence, check_shape  # noqa: PLC0415

    noise = np.random.default_rng(0).laplace(size=(2, 2_000, 1))
    bound = lower_bound(noise[0], noise[1] + 1, delta=0.0)
    found = [check_record_independence(4), check_shape(2)]
    assert all(each.passed for each in found), found
    return f"epsilon at least {bound.epsilon:.2f}; {', '.join(each.check for each in found)}"


def cloud() -> str:
    """Read a table of an object store."""
    from pyarrow import fs  # noqa: PLC0415

    store = fs.S3FileSystem(
        endpoint_override=os.environ["AWS_ENDPOINT_URL"], allow_bucket_creation=True, background_writes=False
    )
    store.create_dir("clinic")
    with store.open_output_stream("clinic/visits.parquet") as file:
        pq.write_table(table(), file)
    return f"s3, {estimated('s3://clinic/visits.parquet')}"


def console() -> str:
    """Open the login page of a site's console, and import what serves it."""
    import gunicorn.app.base  # noqa: PLC0415, F401
    from authlib.integrations.flask_client import OAuth  # noqa: PLC0415

    from dpcausal.federation.console.application import site_console  # noqa: PLC0415
    from dpcausal.federation.console.settings import Settings  # noqa: PLC0415

    dpcausal("site", "init", "north", "north")
    _fill_in(Path("north"), "0" * 64)
    dpcausal("site", "create-ledger", "north")
    page = (
        site_console(Path("north"), Settings(address="http://127.0.0.1:8480"))
        .test_client()
        .get("/login", base_url="http://127.0.0.1:8480")
    )
    assert page.status_code == 200, page.status
    return f"login page of {len(page.text)} characters, {OAuth.__name__}"


def federation() -> str:
    """Ask a site by files, and make a network, a mailbox's application and metrics."""
    import prometheus_client  # noqa: PLC0415, F401

    from dpcausal.federation.transports.mailbox import client, server  # noqa: PLC0415, F401
    from dpcausal.federation.transports.nvflare import transport  # noqa: PLC0415, F401

    dpcausal("federation", "init", "workspace", "anna", "--host", "localhost")
    dpcausal("site", "init", "north", "north")
    _fill_in(Path("north"), dpcausal("federation", "key", "workspace").strip())
    dpcausal("site", "create-ledger", "north")
    dpcausal("federation", "admit", "workspace", "north", dpcausal("site", "key", "north").strip(), "--units-unknown")
    study = dpc.Study(
        name="trial",
        question="Does it help?",
        requester="anna",
        schema=SCHEMA,
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        pooling="sums",
        design="trial",
    )
    Path("study.toml").write_text(study.to_toml(), encoding="utf-8")
    dpcausal("site", "create-person-key", "adams.key")
    adams = dpcausal("site", "person-key", "adams.key").strip()
    dpcausal("site", "people", "add", "north", "Dr. Adams", "--role", "approver", "--key", adams)
    dpcausal("site", "review", "north", "study.toml")
    dpcausal("site", "approve", "north", study.digest, "--key", "adams.key", "--why", "tried", "--yes")
    dpcausal("federation", "ask", "workspace", "study.toml", "--files", "exchange")
    (request,) = Path("exchange/out").glob("*.request.json")
    dpcausal("site", "answer", "north", request, "--out", "exchange/in/north.message.json")
    printed = dpcausal("federation", "run", "workspace", "study.toml", "--files", "exchange")
    return next(line for line in printed.splitlines() if line.startswith("estimate"))


def match() -> str:
    """Match with the compiled loop."""
    import numba  # noqa: PLC0415

    return f"numba {numba.__version__}, {estimated(None, dpc.PropensityMatching(covariates=['age']))}"


def plots() -> str:
    """Plot a plan, and write a report with figures."""
    study = dpc.Study(
        name="trial", question="?", schema=SCHEMA, estimator=dpc.DifferenceInMeans(), epsilon=1.0, design="trial"
    )
    Path("study.toml").write_text(study.to_toml(), encoding="utf-8")
    dpcausal("plan", "study.toml", "--n", 2_000, "--figure", "plan.png")
    return f"plan.png of {len(Path('plan.png').read_bytes())} bytes"


def postgres() -> str:
    """Read a table of PostgreSQL, and pay from a ledger there."""
    import psycopg  # noqa: PLC0415

    address = os.environ["DPCAUSAL_POSTGRES"]
    plain = address.replace("+psycopg", "")
    with psycopg.connect(plain) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE visits (treat int, score float8, age float8)")
        with cursor.copy("COPY visits FROM STDIN") as copy:
            for line in table().to_pylist():
                copy.write_row([line["treat"], line["score"], line["age"]])
    ledger = dpc.Ledger.create(address, dpc.Budget(epsilon=20, delta=1e-5), as_of="2026-06-30")
    asked = dpc.Vault(f"{plain}#visits", SCHEMA, ledger=ledger, as_of="2026-06-30")
    effect = dpc.DifferenceInMeans().estimate(asked, epsilon=8.0)
    assert abs(effect.estimate - 1) < 0.5, effect
    return f"table and ledger in PostgreSQL: {effect.estimate:.2f}, spent {ledger.spent}"


def spark() -> str:
    """Add up a table where Spark has it."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    pq.write_table(table(), "table.parquet")
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        return f"Spark {session.version}, {estimated(session.read.parquet('table.parquet'))}"
    finally:
        session.stop()


def warehouse() -> str:
    """Read a table of Ibis, and spell a sum for a warehouse that is not here."""
    import ibis  # noqa: PLC0415

    pq.write_table(table(), "table.parquet")
    backend = ibis.duckdb.connect()
    backend.con.execute("CREATE TABLE visits AS FROM 'table.parquet'")
    visits = backend.table("visits")
    sql = ibis.to_sql(visits.group_by("treat").aggregate(total=visits.score.sum()), dialect="bigquery")
    assert "SUM" in str(sql)
    return f"Ibis {ibis.__version__}, {estimated(visits)}"


def _fill_in(folder: Path, key: str) -> None:
    """Complete a site's policy, as its comments ask for."""
    policy = folder / "policy.toml"
    lines = policy.read_text(encoding="utf-8").splitlines()
    done = {"columns = ": 'columns = ["treat", "score", "age"]', "# anna = ": f'anna = "{key}"'}
    filled = (next((done[start] for start in done if line.startswith(start)), line) for line in lines)
    policy.write_text("\n".join(filled), encoding="utf-8")
    pq.write_table(table(), folder / "table.parquet")


USES: dict[str, Callable[[], str]] = {
    use.__name__: use
    for use in (*(accounting, audit, cloud, console, federation, match, plots, postgres, spark, warehouse),)
}
"""A use of each extra."""

if __name__ == "__main__":
    print(USES[sys.argv[1]]())
