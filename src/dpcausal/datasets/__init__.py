"""Published tables that ship with the package, to try it on. They hold nothing secret: anybody can download them.

trial = dpcausal.datasets.stroke_trial()
vault = dpcausal.Vault(trial.path, trial.schema, ledger=ledger, as_of="2011")
"""

from dataclasses import dataclass
from pathlib import Path

from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import Treatment

__all__ = ["ExampleTable", "stroke_trial"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class ExampleTable:
    """A published table and its schema.

    Attributes:
        path: The parquet file: for a `Vault`, for the commands, or for `pandas.read_parquet`.
        schema: What is public about it.
        n: The number of units.
        source: Who collected the data, and where they were published.
        licence: The terms under which the file is here.
    """

    path: Path
    schema: Schema
    n: int
    source: str
    licence: str


def stroke_trial() -> ExampleTable:
    """Return 19,378 patients of the International Stroke Trial, of whom half were allocated to aspirin.

    The columns are `aspirin`, `heparin`, `sex`, `age`, `died` (during follow-up, which was about six months for most)
    and `days` (until death or the end of follow-up). The file holds the columns that are in the project's repository,
    with names and values spelled out and records in another order; nothing else was changed.

    Example:
        >>> stroke_trial().schema.treatment.labels_or_values
        ('no aspirin', 'aspirin')
    """
    return ExampleTable(
        path=_FOLDER / "stroke_trial.parquet",
        schema=Schema(
            treatment=Treatment("aspirin", arms=("no", "yes"), labels=("no aspirin", "aspirin")),
            outcome=Binary("died", labels=("survived", "died"), label="death"),
            covariates=[
                Real("age", 18, 100, unit="years"),
                Binary("sex", values=("female", "male")),
                Category("heparin", ["none", "low", "medium"]),
            ],
        ),
        n=19_378,
        source="International Stroke Trial database, version 2 (Sandercock, Niewada and Członkowska, University of "
        "Edinburgh, 2011), https://doi.org/10.7488/ds/104",
        licence="Open Data Commons Attribution License (ODC-By) 1.0",
    )
