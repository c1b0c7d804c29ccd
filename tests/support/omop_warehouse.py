"""A simulated OMOP warehouse in which every rule of a cohort matters: events too early, too late, two at once."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Part = tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64] | int, npt.NDArray[np.int64] | int]


def warehouse(people: int) -> dict[str, pa.Table]:
    """Return the tables of so many people, who start one of two drugs, or both at once."""
    random = np.random.default_rng(5)
    person = np.arange(1, people + 1)
    female = random.random(people) < 0.5
    born = random.integers(1930, 1999, people)
    joined = np.datetime64("2014-01-01") + random.integers(0, 1_500, people)
    left = joined + random.integers(200, 3_000, people)
    day_0 = joined + random.integers(0, 2_000, people)
    age = day_0.astype("datetime64[Y]").astype(int) + 1970 - born
    diabetes = random.random(people) < 0.1 + 0.003 * (age - 18)
    stays = random.poisson(0.1 + 0.2 * diabetes, people)  # in the year before
    lisinopril = random.random(people) < np.where(diabetes, 0.7, 0.35)
    risk = 0.10 + 0.10 * diabetes + 0.001 * (age - 50) + 0.06 * (stays > 0) - 0.03 * lisinopril
    ill = random.random(people) < risk
    tablets = np.where(lisinopril, 2_000_000_001, 2_000_000_002)  # the pharmacy's own concepts

    def some(share: float) -> npt.NDArray[np.bool_]:
        """Who, of those who are still under observation on day 0."""
        return (random.random(people) < share) & (day_0 < left)

    def between(low: int, high: int) -> npt.NDArray[np.int64]:
        return random.integers(low, high + 1, people)

    def events(table: str, kind: str, day: str, parts: Iterable[Part]) -> pa.Table:
        """A table of events, part by part: who has one, how many days after day 0, and of which concept."""
        parts = list(parts)
        who = np.concatenate([person[mask] for mask, _, _ in parts])
        when = np.concatenate([(day_0 + after)[mask] for mask, after, _ in parts])
        concepts = np.concatenate([np.broadcast_to(concept, people)[mask] for mask, _, concept in parts])
        numbers = np.arange(len(who))
        return pa.table({f"{table}_id": numbers, "person_id": who, f"{kind}_concept_id": concepts, day: when})

    measurement = events(
        *("measurement", "measurement", "measurement_date"),
        ((some(0.7), between(-200, -1), 3004249) for _ in range(3)),
    )
    pressures = pa.array(random.normal(150, 15, len(measurement)))
    gender = np.where(female, 8532, 8507)
    return {
        "person": pa.table({"person_id": person, "gender_concept_id": gender, "year_of_birth": born}),
        "observation_period": pa.table(
            {"person_id": person, "observation_period_start_date": joined, "observation_period_end_date": left}
        ),
        "concept_ancestor": pa.table(
            {"ancestor_concept_id": [1308216, 974166], "descendant_concept_id": [2_000_000_001, 2_000_000_002]}
        ),
        "drug_exposure": events(
            *("drug_exposure", "drug", "drug_exposure_start_date"),
            [
                (some(1.0), 0, tablets),
                (some(0.9), 30, tablets),
                (some(0.1), 45, 4_000_000_003 - tablets),  # switched
                (some(0.03), 0, 4_000_000_003 - tablets),  # both at once
            ],
        ),
        "condition_occurrence": events(
            *("condition_occurrence", "condition", "condition_start_date"),
            [
                (some(0.95), between(-300, 0), 320128),
                (diabetes, between(-900, -1), 201826),
                (some(0.05), between(1, 90), 201826),  # found later: must not count
            ],
        ),
        "visit_occurrence": events(
            *("visit_occurrence", "visit", "visit_start_date"),
            [
                *((stays > count, between(-365, -1), 9201) for count in range(4)),
                (ill, between(1, 90), 9201),
                (some(0.3), between(91, 400), 9201),  # too late to count
                (some(0.5), between(-300, 300), 9202),  # outpatients
            ],
        ),
        "measurement": measurement.append_column("value_as_number", pressures),
    }
