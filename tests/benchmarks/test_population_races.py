"""A short form of `python -m benchmarks.population_races`: real processes, really killed."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dpcausal as dpc
from benchmarks import population_races
from dpcausal.errors import LedgerError
from dpcausal.guarantee import Event
from tests.support.postgres import VARIABLE

pytestmark = pytest.mark.xdist_group("postgresql")


def test_experiments_that_race_and_die_stay_within_the_budget() -> None:
    if VARIABLE not in os.environ:
        pytest.skip(f"no PostgreSQL server: {VARIABLE} is not set; see CONTRIBUTING.md")
    with population_races.fresh_place() as url:
        found = population_races.measure(url, count=30, closed=4, kills=4, seed=3, processes=3, threads=3)
    assert found["processes_killed"] == 4
    assert found["allocated"] == 21
    assert population_races.failures(found) == []


def test_buckets_that_are_raced_for_have_one_experiment() -> None:
    with population_races.fresh_place() as url:
        found = population_races.measure(url, count=24, closed=4, kills=2, seed=3, processes=2, threads=2, buckets=7)
    assert (found["allocated"], found["buckets_taken"]) == (14, 7)
    assert population_races.failures(found) == []
    assert population_races.failures(found | {"buckets_of_two": 1}) == ["buckets_of_two"]


def test_closing_counts_every_grant_that_was_made_meanwhile() -> None:
    with population_races.fresh_place() as url:
        people = dpc.Population.create(url, "people", dpc.Budget(epsilon=2))
        ledger = people.allocate("e", dpc.Budget(epsilon=1), as_of="2026")

        def spend(spender: int) -> int:
            mine = dpc.Ledger(f"{url}?ledger=people/e")
            for place in range(400):
                try:
                    mine.grant(f"{spender} {place}", Event(family="laplace", epsilon=0.001, delta=0.0, mu=0.0), {})
                except LedgerError:
                    return place
            return 400

        with ThreadPoolExecutor(2) as pool:
            spenders = [pool.submit(spend, spender) for spender in range(2)]
            while ledger.spent.epsilon < 0.01:
                time.sleep(0.01)
            returned = people.close("e")
            granted = sum(each.result() for each in spenders)
        people.verify()
        allocated = people.allocated
    assert 10 <= granted < 800
    assert round(1000 * returned.epsilon) == 1000 - granted
    assert round(1000 * allocated.epsilon) == granted


def test_a_race_beyond_the_budget_would_be_found() -> None:
    fine = dict.fromkeys(("allocated_twice", "confirmed_and_lost", "allocated_and_not_confirmed", "not_answered"), 0)
    fine |= {"closed_without_record": 0, "ledgers_that_spent_another_amount": 0, "over_cap": 0}
    fine |= {"allocated": 21, "affordable": 21, "allocated_after_closing_is_exact": 1}
    assert population_races.failures(fine) == []
    assert population_races.failures(fine | {"allocated": 22, "over_cap": 1}) == ["over_cap", "allocated"]


def test_page_shows_the_stored_result() -> None:
    root = Path(__file__).parents[2]
    stored = json.loads((root / "benchmarks/results/population_races.json").read_text(encoding="utf-8"))
    page = (root / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert population_races.failures(stored) == []
    said = " ".join(page.split())
    assert f"{stored['requests']:,} experiments ask for a part" in said
    assert f"moments, {stored['processes_killed']} in all" in said
    assert f"affords {stored['affordable']} of them, and {stored['allocated']} were allocated" in said
    assert f"are closed, with {stored['processes_killed_while_closing']} kills" in said
    assert f"each of {stored['buckets']} buckets of a layer" in said
    assert 2 * stored["buckets"] == stored["requests"] // 2
    assert stored["buckets_taken"] == stored["buckets"] > stored["buckets_of_two"] == stored["buckets_of_none"] == 0
