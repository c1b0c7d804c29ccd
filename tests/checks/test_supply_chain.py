"""Every dependency has a licence that is allowed, and the tables and bills about them are current."""

import pytest

from checks.release import PROJECT
from checks.supply_chain import TABLE, Component, bill_of_materials, components, is_allowed, refusals, table


def test_every_dependency_has_an_allowed_licence() -> None:
    assert not refusals(components())


def test_the_table_of_licences_is_current() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(components()), "run python -m checks.supply_chain"


@pytest.mark.parametrize(
    "licence", ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "GPL-3.0-only AND (MIT OR ISC)", "SSPL-1.0 OR unknown"]
)
def test_unknown_and_incompatible_licences_are_refused(licence: str) -> None:
    assert not is_allowed(licence)
    assert refusals([Component("a", "1", licence, ())])


@pytest.mark.parametrize("licence", ["MIT", "MIT OR GPL-3.0-only", "ISC AND (GPL-3.0-only OR Zlib)", "MIT AND Zlib"])
def test_permissive_licences_are_allowed(licence: str) -> None:
    assert is_allowed(licence)


def test_the_bill_of_materials_names_every_direct_dependency() -> None:
    bill = bill_of_materials(components())
    assert bill == bill_of_materials(components())
    listed = {each["name"].lower().replace("_", "-") for each in bill["components"]}
    assert {line.partition(">")[0] for line in PROJECT["dependencies"]} <= listed
    assert len(bill["dependencies"][0]["dependsOn"]) >= len(PROJECT["dependencies"])
