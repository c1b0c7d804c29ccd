"""A site with several tables, whose columns and codes are its own: one ledger, and one mapping that people approve."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tomli_w
from typer.testing import CliRunner

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import StudyError
from dpcausal.federation.console.site_folder import SiteFolder
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.confirmation import check_data_versions, recorded_policy
from dpcausal.federation.site.decisions import sign_decision
from dpcausal.federation.site.policy import FILE, Policy
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from dpcausal.ledger import Budget, DataSet, Ledger
from dpcausal.schema.mapping import ColumnMapping, LocalColumn
from tests.support.site_folders import AS_OF, approve_study, confirm_settings, person_key

LABS = "labs 2026-06-30"
"""The version of the second table."""


def edit(folder: Path, **changes: object) -> None:
    document = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
    document.pop("entry", None)  # a site with several tables pays for no schedule once
    (folder / FILE).write_text(tomli_w.dumps(document | changes), encoding="utf-8")


@pytest.fixture
def study(study: Study) -> Study:
    return replace(study, schema=replace(study.schema, entry=None))


@pytest.fixture
def two(folder: Path, study: Study) -> Path:
    """A site with a second table, labs, of fewer units, where the arm and the outcome have names of their own."""
    table = pq.read_table(folder / "table.parquet").slice(0, 300)
    arm = study.schema.treatment
    codes = {str(each): f"code {place}" for place, each in enumerate(arm.arms)}
    local = [codes[str(each)] for each in table[arm.name].to_pylist()]
    table = table.set_column(table.column_names.index(arm.name), "trt", [local])
    pq.write_table(table.rename_columns({study.schema.outcome.name: "result"}), folder / "labs.parquet")
    mapping = {arm.name: {"column": "trt", "codes": codes}, study.schema.outcome.name: {"column": "result"}}
    columns = [column.name for column in study.schema.columns]
    labs = {"table": "labs.parquet", "as_of": LABS, "columns": columns, "mapping": mapping}
    edit(folder, tables={"labs": labs})
    Site(folder).ledger().add_version(LABS)
    confirm_settings(folder)
    return folder


def answer(folder: Path, requester: Key, study: Study) -> Message:
    request = Request(study=study.to_toml(), ask="releases")
    return Message.from_json(claimed_body(Site(folder).answer(requester.seal(request.to_json()))))


def test_studies_name_their_table_and_all_share_one_ledger(two: Path, requester: Key, study: Study) -> None:
    labs = replace(study, table="labs")
    assert Study.from_toml(labs.to_toml()).table == "labs"
    for each in (study, labs):
        approve_study(two, each)
    first, second = (answer(two, requester, each) for each in (study, labs))
    assert (first.code, first.n, first.as_of) == ("answered", 400, AS_OF)
    assert (second.code, second.n, second.as_of) == ("answered", 300, LABS)
    ledger = Site(two).ledger()
    assert ledger.spent.epsilon == 2.0  # the same question of another table is another question
    assert ledger.versions == {AS_OF: 400, LABS: 300}
    assert site_status(two).level < 2
    page = SiteFolder(two).study(labs.digest)
    assert page
    assert (page.units, page.received.answered) == (300, True)


def test_a_table_or_a_code_that_the_site_does_not_have_is_an_objection(two: Path, study: Study) -> None:
    site = Site(two)
    review = site.review(site.receive(replace(study, table="drugs").to_toml()))
    assert "this site has no table 'drugs'" in str(review)
    edit(two, tables={"labs": {**tomllib.loads((two / FILE).read_text())["tables"]["labs"], "columns": ["arm"]}})
    with pytest.raises(StudyError, match="no study may read"):
        Policy.read(two)


def test_people_approve_the_mapping(two: Path, requester: Key, study: Study) -> None:
    labs = replace(study, table="labs")
    site, key = Site(two), person_key(two, "bob")
    digest = site.receive(labs.to_toml())
    shown = CliRunner().invoke(app, ["site", "approve", str(two), digest, "--key", str(key), "--yes"])
    assert shown.exit_code == 0, shown.output
    mapping = site.mapping_of("labs")
    assert f"mapping {mapping}" in shown.output
    assert "from trt: code 0 as" in shown.output
    (entry,) = site.audit_log.decisions(digest)
    assert mapping in entry.sealed
    assert site.status(digest) == "approved"

    document = tomllib.loads((two / FILE).read_text())["tables"]["labs"]
    arm = document["mapping"][study.schema.treatment.name]["codes"]
    swapped = dict(zip(arm, reversed(arm.values()), strict=True))
    document["mapping"][study.schema.treatment.name]["codes"] = swapped
    edit(two, tables={"labs": document})
    assert Site(two).status(digest) == "undecided"
    confirm_settings(two)  # nothing was answered by the first mapping
    assert Site(two).status(digest) == "undecided"
    assert answer(two, requester, labs).code == "undecided"
    old = sign_decision(Key.read("", key), site="north", study=digest, kind="approve", by="bob", mapping=mapping)
    with pytest.raises(StudyError, match="another mapping"):
        Site(two).decide(old)
    approve_study(two, labs, "bob")
    assert answer(two, requester, labs).code == "answered"


def test_stored_answers_are_never_those_of_another_mapping(two: Path, requester: Key, study: Study) -> None:
    labs = replace(study, table="labs")
    approve_study(two, labs)
    assert answer(two, requester, labs).code == "answered"
    document = tomllib.loads((two / FILE).read_text())["tables"]["labs"]
    del document["mapping"][study.schema.outcome.name]
    edit(two, tables={"labs": document})
    with pytest.raises(StudyError, match="answered by another mapping"):
        Changes(two).confirm("a person", "edited")
    edit(two, tables={"visits": document})
    with pytest.raises(StudyError, match="or as another table"):
        Changes(two).confirm("a person", "edited")
    edit(two, tables={"labs": {**document, "as_of": "labs 2026-07-31"}})
    confirm_settings(two)


def test_answers_before_any_recorded_policy_are_those_of_the_plain_table(folder: Path, study: Study) -> None:
    ledger = Ledger.create(f"sqlite:///{folder / 'early.db'}", Budget(epsilon=3.0), as_of=AS_OF)
    ledger.bind(AS_OF, DataSet.of(study.schema), 400)
    assert recorded_policy(ledger) == {}
    check_data_versions(folder, ledger)
    edit(folder, mapping={study.schema.outcome.name: {"column": "result"}})
    with pytest.raises(StudyError, match="answered by another mapping"):
        check_data_versions(folder, ledger)


def test_two_tables_with_one_version_are_refused(two: Path) -> None:
    labs = tomllib.loads((two / FILE).read_text())["tables"]["labs"]
    edit(two, tables={"labs": {**labs, "as_of": AS_OF}})
    with pytest.raises(StudyError, match="same as_of"):
        Policy.read(two)


def test_a_schedule_that_is_paid_once_has_one_table_and_its_own_column_of_entry(two: Path, study: Study) -> None:
    """Otherwise a requester could ask for one look here and for the next there, where a person entered in another."""
    with pytest.raises(StudyError, match="only for a site with one table"):
        replace(Policy.read(two), entry="ward")
    one = replace(Policy.read(two), entry="ward", tables={})
    with pytest.raises(StudyError, match="only for a site with one table"):
        replace(one, mapping=ColumnMapping({"ward": LocalColumn(column="week")}))
