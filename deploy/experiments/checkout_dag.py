# ruff: noqa: INP001 (Airflow reads files, not a package)
"""An Airflow 3 job that reads one look of an experiment each week: dbt makes the users, dpcausal the scorecard.

A job that is tried again pays nothing again. The folder holds checkout.toml, metrics.toml, the ledger checkout.db and
the dbt project. The table stays with Airflow; readers get the pages.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.exceptions import AirflowFailException
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, task

FOLDER, LOOKS = "/srv/experiments", 4
FIRST_LOOK = datetime(2026, 11, 16, 6, tzinfo=UTC)  # when the first cohort is complete

with DAG(
    dag_id="checkout",
    schedule="0 6 * * 1",
    start_date=FIRST_LOOK,
    end_date=FIRST_LOOK + timedelta(weeks=LOOKS - 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    user_defined_macros={"first_look": FIRST_LOOK},
):
    users = BashOperator(task_id="users", cwd=FOLDER, bash_command="dbt build --select +users")
    look = BashOperator(
        task_id="look",
        cwd=FOLDER,
        bash_command="dpcausal experiment run checkout.toml --table warehouse.duckdb#users --new-version --yes "
        "--as-of {{ data_interval_end | ds }} --look {{ (data_interval_end - first_look).days // 7 + 1 }}",
    )
    page = BashOperator(
        task_id="page", cwd=FOLDER, bash_command="dpcausal experiment watch . --html /srv/www/experiments.html"
    )

    @task
    def decisions() -> dict[str, str]:
        """Return what to do with each arm, and fail where users were lost or counted twice."""
        card = json.loads(Path(FOLDER, "checkout.json").read_text(encoding="utf-8"))
        if card["sample_ratio"]["mismatch"]:
            raise AirflowFailException("The sizes of the arms do not fit the allocation: read no metric.")
        return {each["arm"]: each["action"] for each in card["decisions"]}

    users >> look >> [page, decisions()]
