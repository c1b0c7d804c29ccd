"""Exports of the audit log: every answer with its price and receipts, in three formats."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import LedgerError
from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.export import exported
from dpcausal.federation.site.site import Site
from dpcausal.utils.hash_chain import digest_of_text
from tests.support.site_folders import approve_study, signed


@pytest.fixture
def busy(folder: Path, requester: Key, study: Study) -> Site:
    """A site that answered three studies, of which one asked the same queries, refused one, and met a stranger."""
    site = Site(folder)
    for each in (study, replace(study, question="The same?"), replace(study, name="dear", epsilon=1.5)):
        approve_study(folder, each)
        for _ in range(2):
            site.answer(requester.seal(Request(study=each.to_toml(), ask="releases").to_json()))
    digest = site.receive(replace(study, name="refused").to_toml())
    site.decide(signed(folder, digest, "reject", "bob", "=HYPERLINK(1)"))
    site.answer("nonsense")
    return site


def lines(site: Site) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(site, "jsonl").splitlines()]


def test_each_answer_has_study_price_and_receipt(busy: Site, study: Study) -> None:
    found = lines(busy)
    answers = [event for event in found if event["event"] == "request"]
    assert [(event["name"], event["epsilon"]) for event in answers] == [
        ("scores", 1.0),
        ("scores", 0.0),
        ("scores", 0.0),
        ("scores", 0.0),
        ("dear", 1.5),
        ("dear", 0.0),
    ]
    assert sum(event["epsilon"] for event in answers) == busy.ledger().spent.epsilon
    assert answers[0]["study"] == digest_of_text(study.to_toml())
    assert answers[0]["receipts"] == answers[2]["receipts"]
    assert all("arm_moments: epsilon" in event["receipts"][0] for event in answers)
    assert [(event["event"], event["who"]) for event in found[-2:]] == [
        ("rejected", "bob"),
        ("request without a valid signature", ""),
    ]
    assert [event["digest"] for event in found] == [entry.digest for entry in busy.audit_log.entries()]
    assert all(bool(event["signed"]) == (event["event"] in ("approved", "rejected")) for event in found)


def test_csv_has_the_same_lines_and_no_formulas(busy: Site) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(busy, "csv").decode())))
    assert [row["digest"] for row in rows] == [event["digest"] for event in lines(busy)]
    assert [row["epsilon"] for row in rows if row["name"] == "dear"] == ["", "1.5", "0.0"]
    assert [row["detail"] for row in rows if row["event"] == "rejected"] == ["'=HYPERLINK(1)"]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["site", "export", *map(str, words)])


def test_command_writes_a_new_file_outside_the_site(busy: Site, folder: Path, tmp_path: Path) -> None:
    for form in ("jsonl", "csv"):
        out = tmp_path / f"log.{form}"
        assert run(folder, "--format", form, "--out", out).exit_code == 0
        assert out.stat().st_size > 0
        assert run(folder, "--format", form, "--out", out).exit_code == 2
        assert run(folder, "--format", form, "--out", out, "--overwrite").exit_code == 0
    assert (tmp_path / "log.jsonl").read_bytes() == exported(busy, "jsonl")
    assert run(folder, "--format", "csv", "--out", folder / "policy.toml", "--overwrite").exit_code == 2
    assert run(folder, "--format", "xml", "--out", tmp_path / "log.xml").exit_code == 2


def test_changed_log_is_not_exported(busy: Site, folder: Path) -> None:
    file = folder / "audit_log.jsonl"
    file.write_text(file.read_text().replace("answered", "rejected", 1))
    with pytest.raises(LedgerError, match="The audit log was changed"):
        exported(busy, "jsonl")
