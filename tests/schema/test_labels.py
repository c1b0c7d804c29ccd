"""The label and the unit of a column stand in sentences and on axes, and change nothing that is asked or paid."""

from datetime import date

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.report import forest_plot

NAMED = dpc.Real("re78", 0, 60_000, label="earnings in 1978", unit="dollars")


def schema(outcome: dpc.Real) -> dpc.Schema:
    return dpc.Schema(dpc.Treatment("arm", labels=("none", "training")), outcome)


def test_outcome_is_called_by_its_label_in_effect_report_and_figure() -> None:
    table = pa.table({"arm": [0, 1] * 500, "re78": [20_000, 30_000] * 500})
    vault = dpc.Vault(table, schema(NAMED), ledger="sqlite://", budget=dpc.Budget(epsilon=2))
    effect = dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)
    assert str(effect).startswith("Effect of training against none on earnings in 1978 (dollars)\n")
    study = dpc.Study(
        name="Training",
        question="Does training pay?",
        schema=schema(NAMED),
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        design="trial",
    )
    report = dpc.Report.of(effect, study, vault.ledger, date=date(2026, 9, 1))
    assert report.verdict.text.startswith("Mean earnings in 1978 (dollars) is ")
    wards = dpc.Schema(dpc.Treatment("arm"), NAMED, covariates=[dpc.Category("ward", ["a", "b"])])
    curve = dpc.SubgroupEffects(by=["ward"]).estimate(dpc.Rehearsal(wards, n=500), epsilon=1.0)
    assert "earnings in 1978 (dollars)" in forest_plot(curve).axes[0].get_xlabel()
    (again,) = dpc.Study.from_toml(study.to_toml()).schema.columns[1:]
    assert again == NAMED


def test_label_changes_nothing_that_is_asked() -> None:
    """A stored answer is found again under another label, and costs nothing."""
    table = pa.table({"arm": [0, 1] * 50, "re78": [20_000, 30_000] * 50})
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=1), as_of="2026")
    effects = [
        dpc.DifferenceInMeans().estimate(dpc.Vault(table, schema(each), ledger=ledger, as_of="2026"), epsilon=1.0)
        for each in (dpc.Real("re78", 0, 60_000), NAMED)
    ]
    assert effects[0].estimate == effects[1].estimate


@pytest.mark.parametrize("text", ["", " ", 7, "a\nb"])
def test_label_that_cannot_be_printed_is_refused(text: object) -> None:
    for column in (dpc.Real, dpc.Category):
        with pytest.raises(dpc.DpcausalError, match="label"):
            column("x", *((0, 1) if column is dpc.Real else (["a", "b"],)), label=text)  # type: ignore[arg-type]
