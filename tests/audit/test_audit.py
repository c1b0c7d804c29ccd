"""The whole audit: from the command line, at its smallest size, and as it prints."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.audit import CHECKS, NOT_AUDITED, AuditReport, Finding, audit, fuzz, hostile, lower_bound, worst_pairs
from dpcausal.audit.losses import claims
from dpcausal.audit.opening import _full_disk
from dpcausal.audit.run import Watcher
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.audit.targets import PLAIN, TARGETS
from dpcausal.cli import app
from dpcausal.estimators import average
from dpcausal.estimators.base import BaseEstimator
from dpcausal.queries import QUERIES
from dpcausal.schema.schema import PROTECTS
from dpcausal.testing import standard_schema
from dpcausal.utils.discovery import classes_in


@pytest.mark.costly("src")  # checks of every kind, on some targets, are in test_mutants.py in every run
@pytest.mark.timeout(1800)
@pytest.mark.xdist_group("audit")
def test_smoke_audit_makes_every_check_of_every_estimator_and_finds_nothing() -> None:
    result = CliRunner().invoke(app, ["audit", "--smoke", "--workers", "1", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["passed"]
    assert report["effort"] == "smoke"
    assert set(report["checks"]) == set(CHECKS)
    assert all(check["passed"] == check["of"] > 0 for check in report["checks"].values())
    names = [line["estimator"] for line in report["estimators"]]
    assert {name.partition(",")[0] for name in names} == {target.estimator for target in TARGETS}
    for check in ("epsilon", "draws", "public_outputs"):
        assert {each["target"] for each in report["findings"] if each["check"] == check} == set(names)
    assert report["hostile_tables"] >= 10


def test_every_shipped_estimator_and_query_is_audited() -> None:
    names = {target.estimator for target in TARGETS}
    curves = {kind.__name__ for kind in classes_in("dpcausal.estimators.conditional", BaseEstimator)}
    assert curves <= names
    assert {"".join(word.title() for word in name.split("_")) for name in average.ESTIMATORS} <= names
    asked = {claim.query.name for group in claims().values() for claim in group}
    by_density = {query for query in QUERIES if query.endswith("_logistic") and query != "output_perturbed_logistic"}
    attacked = {*by_density, "noisy_matched_contrast"}
    assert set(QUERIES) - asked == attacked


@pytest.mark.parametrize("protects", PROTECTS)
def test_pairs_are_neighbours(protects: str) -> None:
    schema = standard_schema(protects)  # type: ignore[arg-type]
    public = {"record": [], "record_within_arm": ["treat"], "outcome": ["treat", "ward", "age", "smoker"]}[protects]
    pairs = worst_pairs(schema.protects)
    assert len({pair.name for pair in pairs}) == len(pairs) >= 15
    for pair in pairs:
        assert repr(pair.before) != repr(pair.after)
        assert all(repr(pair.before[name]) == repr(pair.after[name]) for name in public)


def test_outcomes_that_cannot_be_missing_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = next(hostile.listed_strangers())
    totals = replace(plain.layout.schema, unit=dpc.Unit("who", by="age", sum=["score"]))
    pairs = [replace(plain, layout=replace(plain.layout, schema=totals, turn=turn)) for turn in range(3)]
    monkeypatch.setattr(fuzz, "listed_strangers", lambda: pairs)
    counting = [target for target in TARGETS if target.counts_missing]
    assert "MissingOutcomes" in {target.estimator for target in counting}
    other = next(each for each in TARGETS if each.protects == totals.protects and not each.counts_missing)
    found = fuzz.check_shape(1, targets=[*counting, other])
    assert found.passed, found.detail


def test_a_table_that_is_no_neighbour_would_be_seen() -> None:
    """The mutant: two units changed at once show more than epsilon."""
    pair = next(each for each in worst_pairs(PLAIN.schema.protects) if each.name == "extreme outcome")
    catalogue = catalogue_of(PLAIN.schema)
    tables = [[*pair.rest, pair.before, pair.before], [*pair.rest, pair.after, pair.after]]
    vaults = [Unmetered(catalogue.assemble(table), PLAIN.schema) for table in tables]
    one, other = (PLAIN.transcripts(vault, 20_000) for vault in vaults)
    assert lower_bound(one, other).epsilon > 1.4  # about 1.8, with a standard deviation of 0.04


def test_a_failed_check_is_printed_and_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"epsilon": 1.0, "delta": 0.0, "exact": 2.0, "bound": 1.8, "confidence": 0.999, "runs": 10}
    report = AuditReport(
        (Finding("epsilon", PLAIN.name, passed=False, detail="a pair: an event", numbers=numbers),),
        effort="quick",
        seconds=1.0,
    )
    monkeypatch.setattr("dpcausal.audit.audit", lambda **_: report)
    result = CliRunner().invoke(app, ["audit"])
    assert result.exit_code == 1
    assert "1 failed" in result.stdout
    assert "FAILED epsilon, plain Laplace: a pair: an event" in result.stdout
    assert all(line in result.stdout for line in NOT_AUDITED)


def test_each_finished_check_is_told_at_once_also_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("noise", "arm_moments", passed, "seen") for passed in (True, False)]

    def made(*, watcher: Watcher, **_: object) -> AuditReport:
        for place, finding in enumerate(findings, start=1):
            watcher(place, len(findings), [finding])
        return AuditReport(tuple(findings), effort="quick", seconds=1.0)

    monkeypatch.setattr("dpcausal.audit.audit", made)
    result = CliRunner().invoke(app, ["audit", "--quick", "--json"])
    told = ["1 of 2: noise, arm_moments: passed", "2 of 2: noise, arm_moments: FAILED"]
    assert [line for line in result.stderr.splitlines() if " of 2: " in line] == told
    assert json.loads(result.stdout)["passed"] is False


def test_what_is_not_installed_is_said_before_the_work_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dpc, "audit")
    monkeypatch.delitem(sys.modules, "dpcausal.audit")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    without = CliRunner().invoke(app, ["audit", "--quick"])
    assert without.exit_code == 2
    assert "dpcausal[audit]" in without.output


def test_a_check_that_breaks_down_is_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.audit.run.tasks", lambda _: [breaks_down])
    report = audit(effort="quick", workers=1)
    assert not report.passed
    assert "ZeroDivisionError" in report.findings[0].detail


def breaks_down() -> list[Finding]:
    raise ZeroDivisionError


def test_full_disk_leaves_no_truncated_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_meanwhile.py").write_text(f"VALUES = {list(range(2_000))}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    with _full_disk(full=True):
        importlib.import_module("imported_meanwhile")
    assert not list(tmp_path.rglob("*.pyc"))
    assert not sys.dont_write_bytecode


def test_a_check_that_was_not_made_has_not_passed() -> None:
    made = [Finding(name, "something", passed=True, detail="") for name in CHECKS]
    assert AuditReport(tuple(made), effort="quick", seconds=1.0).passed
    assert not AuditReport(tuple(made[1:]), effort="quick", seconds=1.0).passed
