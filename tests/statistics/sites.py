"""A study that requires diagnostics, at a site: its policy has no budget for these."""

import tempfile
from dataclasses import replace
from pathlib import Path

from dpcausal import DifferenceInMeans, Study
from dpcausal.errors import StudyError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.site_folders import approve_study, make_site_folder

REQUIRED = {"balance": {"epsilon": 0.1, "covariates": ["age"]}, "overlap": {"epsilon": 0.1, "covariates": ["age"]}}


def check_requires_at_a_site() -> str:
    """Return what is wrong with a site's answer to studies that require diagnostics; empty where nothing is."""
    schema = standard_schema()
    study = Study(
        name="scores",
        question="Does treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=DifferenceInMeans(),
        epsilon=1.0,
    )
    with tempfile.TemporaryDirectory() as place:
        requester = Key.make("anna", Path(place) / "anna.key")
        folder = Path(place) / "north"
        make_site_folder(folder, "north", synthetic_table(schema, 400), schema, {"anna": requester.public})
        for name, given in REQUIRED.items():
            if _approved(folder, replace(study, requires={name: given})):
                return f"a study that requires {name} was approved"
        return "" if _approved(folder, study) else "a study without diagnostics was not approved"


def _approved(folder: Path, study: Study) -> bool:
    try:
        approve_study(folder, study)
    except StudyError:
        return False
    return True
