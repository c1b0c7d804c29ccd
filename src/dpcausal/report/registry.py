"""A record for the OpenDP Deployments Registry: https://github.com/opendp/deployments-registry-data.

The keys are those of the registry's own records as of September 2026. Fields that only a person can know say so.
"""

import re
from typing import Any

from dpcausal.report.section import ReportInputs
from dpcausal.report.sections.privacy import (
    NOISE,
    NOT_GUARANTEED,
    PUBLIC,
    SOURCE,
    count_answers,
    privacy_unit,
    trust_model,
)
from dpcausal.utils.text import format_number

TO_FILL_IN = "TO BE FILLED IN"


def registry_record(report: ReportInputs) -> dict[str, Any]:
    """Return a draft record, in which a person fills in who publishes it and where."""
    effect, study = report.effect, report.study
    slug = re.sub(r"[^a-z0-9]+", "-", (study.name if study else report.title).lower()).strip("-")
    return {
        "url_slug": slug or "effect",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": study.name if study else report.title,
                "data_curators": [{"data_curator_name": TO_FILL_IN, "data_curator_type": TO_FILL_IN}],
                "intended_use": study.question if study else TO_FILL_IN,
                "data_product_type": "Summary statistics",
                "data_product_region": TO_FILL_IN,
                "description": f"{report.title}: {effect.estimand}. {_published(report)}",
                "publication_date": report.date.isoformat(),
                "data_product_sector": TO_FILL_IN,
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if effect.guarantee.delta else "Pure DP",
                "data_domain": f"Tables of {effect.n} units with the columns and values declared by the study.",
                "unprotected_quantities": f"{PUBLIC[effect.guarantee.protects]}; the study, its schema and its prices.",
            },
            "privacy_loss": _loss(report),
            "deployment_model": {
                "model_name": "Federated" if effect.sites else "Central",
                "model_name_details": trust_model(report),
                "actors": "The data holder is trusted with the table. The analyst and everyone else are not.",
                "release_type": "One release",
                "release_type_details": _releases(report),
                "data_source_type": "Static",
                "access_type": "Non-interactive",
                "access_type_details": "The effect was published; its readers cannot query the data.",
            },
            "accounting": {
                "post_processing": "The estimate, its interval and this report are computed from noisy answers only.",
                "composition": "Losses add up over queries, also over queries chosen after seeing earlier answers.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _before(report),
                "mechanisms": f"{NOISE} {SOURCE} Not guaranteed: {'; '.join(NOT_GUARANTEED)}.",
                "justification": _justified(report),
            },
            "administrative": {"registry_authors": [TO_FILL_IN]},
        },
    }


def _published(report: ReportInputs) -> str:
    if report.effect.rehearsed:
        return "A rehearsal: nothing was published."
    if report.interval is None:
        return f"Estimate {format_number(report.effect.estimate)}, without an interval."
    low, high = map(format_number, report.interval)
    return f"Estimate {format_number(report.effect.estimate)}, 95 % interval {low} to {high}."


def _loss(report: ReportInputs) -> dict[str, Any]:
    guarantee, asked = report.effect.guarantee, (report.effect, *report.diagnoses)
    parameters = {"epsilon": report.price.epsilon} | ({"delta": report.price.delta} if report.price.delta else {})
    queries = "; ".join(f"{paid.query} epsilon {paid.epsilon:g}" for each in asked for paid in each.receipts)
    unproved = "" if guarantee.proof_status == "proved" else " NOT PROVED."
    return {
        "privacy_unit": privacy_unit(report),
        "privacy_unit_details": f"Bounded: {guarantee.neighbours}.",
        "privacy_parameters": parameters,
        "privacy_parameters_details": f"By query: {queries}.{unproved}",
    }


def _releases(report: ReportInputs) -> str:
    if report.ledger_summary is None:
        return "The ledger of the data set records everything else that was released; it was not read for this record."
    ledger = report.ledger_summary
    return f"Total spent on the data set: {ledger.total}, in {count_answers(ledger)}; budget {ledger.budget}."


def _before(report: ReportInputs) -> str:
    bounds = dict(report.study.bounds) if report.study else {}
    who = ", ".join(f"{key}: {value}" for key, value in bounds.items()) or "not specified"
    return (
        f"Values were clipped to bounds declared in advance ({who}); missing values count as declared constants. "
        "dpcausal tuned nothing on the data and read nothing that was not paid for."
    )


def _justified(report: ReportInputs) -> str:
    planned = "" if report.planned is None else f" Planned half-width of the interval: {format_number(report.planned)}."
    return f"{report.verdict.text}{planned}"
