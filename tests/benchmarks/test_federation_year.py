"""The plan of the year that `benchmarks.federation_year` lives through."""

from benchmarks.federation_year.plan import DAYS, KINDS, STUDIES, studies


def test_studies_of_a_year_are_of_all_kinds_and_drawn_from_a_seed() -> None:
    drawn = studies(1)
    assert drawn == studies(1) != studies(2)
    assert len(drawn) == STUDIES
    assert {asked.kind for asked in drawn} == set(KINDS)
    assert {asked.fate for asked in drawn} == {"plain", "rejected", "withdrawn", "late", "lapsed"}
    assert all(asked.site in asked.sites and asked.site != asked.kill for asked in drawn)
    assert all(asked.day + 41 < DAYS for asked in drawn)
