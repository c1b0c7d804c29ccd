import dataclasses
import hashlib
import importlib.util
import json
import re
from datetime import date
from html.parser import HTMLParser
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.page import html_page
from dpcausal.release import Receipt
from dpcausal.report import Picture, Report
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.interval import NoiseTerm
from tests.report.conftest import Made, like, part

DAY = date(2026, 1, 31)
HOSTILE = "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&$\\frac"


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(html)
    return parser.found


def check_harmless(html: str) -> None:
    """Raise unless a page runs nothing, fetches nothing, and can be written to a file."""
    html.encode()
    for tag, attributes in tags(html):
        assert tag not in {"script", "iframe", "object", "embed", "form", "base", "link"}
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("src") or "data:").startswith("data:image/") or tag != "img"
        assert (attributes.get("href") or "#").startswith("#")
    assert "\x00" not in html
    assert "\u202e" not in html


def as_released(diagnosis: Any) -> Any:
    """A rehearsed diagnosis as if it had been paid for, in place of one whose verdict noise decides."""
    receipts = tuple(dataclasses.replace(each, entry=2, digest="cd" * 32) for each in diagnosis.receipts)
    return dataclasses.replace(diagnosis, receipts=receipts)


def diagnoses(schema: dpc.Schema, covariate: str) -> tuple[OverlapTable, BalanceTable]:
    rehearsal = dpc.Rehearsal(schema, n=5_000)
    overlap = dpc.Overlap(by=[covariate]).estimate(rehearsal, epsilon=0.1)
    return overlap, dpc.Balance(covariates=[covariate]).estimate(rehearsal, epsilon=0.2)


@pytest.fixture
def report(made: Made, study: dpc.Study) -> Report:
    return Report.of(made(), study, date=DAY)


@pytest.fixture
def hostile(made: Made, sites: tuple[SiteShare, ...]) -> Report:
    """A report whose every text was written by somebody who means harm."""
    words = HOSTILE
    schema = dpc.Schema(
        treatment=dpc.Treatment("t" + words, labels=("a" + words, "b" + words), undeclared=0),
        outcome=dpc.Real("y" + words, 0, 10),
        covariates=[dpc.Category("c" + words, ["x", words])],
    )
    study = dpc.Study(
        name=words,
        question=words,
        schema=schema,
        estimator=dpc.Stratification(by=[schema.covariates[0].name]),
        epsilon=1.0,
        eligibility=words,
        time_zero=words,
        confounders={schema.covariates[0].name: words},
        bounds={"by": words, "on": words, "source": words},
        requester=words,
        epsilons={words: 0.5},
    )
    names = {"arms": schema.treatment.labels, "outcome": schema.outcome.name}
    honest = made(**names, assumptions=schema.data_handling, **like(study))
    effect = dataclasses.replace(
        honest,
        estimand=HOSTILE,
        arms=("a" + HOSTILE, "b" + HOSTILE),
        outcome=HOSTILE,
        method=HOSTILE,
        assumptions=(HOSTILE,),
        notes=(HOSTILE,),
        receipts=(Receipt(HOSTILE, 1.0, 0.0, 1, HOSTILE, HOSTILE),),
        sites=(dataclasses.replace(sites[1], site=HOSTILE, status=HOSTILE), sites[2]),
    )
    return dataclasses.replace(
        Report.of(honest, study, date=DAY, figures=[Picture(HOSTILE, b"\x89PNG", HOSTILE)]),
        effect=effect,
        diagnoses=tuple(
            dataclasses.replace(each, arms=effect.arms, method=HOSTILE, notes=(HOSTILE,))
            for each in diagnoses(schema, schema.covariates[0].name)
        ),
    )


def test_page_escapes_every_text(hostile: Report) -> None:
    html = hostile.to_html().replace("\\frac", "")
    check_harmless(html)
    assert html.count("&lt;script&gt;") > 25


def test_page_that_does_not_escape_is_caught(hostile: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_page, "escape", str)
    with pytest.raises(AssertionError):
        check_harmless(hostile.to_html())


def test_hostile_text_does_not_break_json(hostile: Report) -> None:
    assert json.loads(hostile.to_json())["effect"]["outcome"] == HOSTILE


def test_page_is_complete_and_accessible(report: Report) -> None:
    html = report.to_html()
    check_harmless(html)
    found = tags(html)
    assert ("html", {"lang": "en"}) in found
    assert all(attributes.get("alt") for tag, attributes in found if tag == "img")
    assert all(
        attributes.get("aria-label") or attributes.get("aria-hidden") or "x" in attributes
        for tag, attributes in found
        if tag == "svg"
    )
    assert all(attributes == {"scope": "col"} for tag, attributes in found if tag == "th")
    headings = [tag for tag, _ in found if tag in {"h1", "h2", "h3"}]
    assert headings == ["h1", "h2", "h2", "h2"] + ["h3"] * 10
    anchors = [attributes["id"] for tag, attributes in found if tag == "section"]
    links = [str(attributes["href"])[1:] for tag, attributes in found if tag == "a"]
    assert anchors == ["summary", "methods", *links]


def test_page_is_reproducible_to_the_byte(report: Report) -> None:
    later = dataclasses.replace(report, date=date(2026, 2, 28))
    assert report.to_html() == report.to_html()
    assert later.to_html() == report.to_html().replace("2026-01-31", "2026-02-28")
    assert later.to_json() == report.to_json().replace("2026-01-31", "2026-02-28")


def test_json_and_page_have_the_same_text(report: Report) -> None:
    document, html = json.loads(report.to_json()), report.to_html()
    for section in document["sections"]:
        for text in (
            section["title"],
            *section["paragraphs"],
            *section["notes"],
            *(each for item in section["items"] for each in item),
        ):
            assert html_page.html_text(text) in html
    assert dpc.Effect.from_json(json.dumps(document["effect"])) == report.effect
    assert dpc.Study.from_toml(document["study"]) == report.study


def test_first_page_has_verdict_picture_reasons_and_methods_in_this_order(report: Report) -> None:
    html = report.to_html()
    places = [
        html.index(each)
        for each in ('class="verdict"', "<figure>", ">Reasons<", ">Methods paragraph, to paste<", 'id="appendix"')
    ]
    assert places == sorted(places)
    assert report.verdict.text == (
        "Mean score is 2.00 higher with training than with usual care, adjusted (95 % confidence interval 1.18 to "
        "2.82; not adjusted for age; balance was not checked); no smallest worthwhile effect was given."
    )


def test_reasons_state_question_design_noise_and_guarantee(report: Report) -> None:
    items = dict(part(report, "summary").items)
    assert items["Question"] == "Does training help?"
    assert items["Design"].startswith("Observational study, adjusted for race.")
    assert items["Precision"].startswith("Privacy noise widens the interval from ± 0.59 to ± 0.82.")
    assert items["Privacy"] == (
        "Replacing any one unit's record changes the probability of this result by at most a factor of 2.72 "
        "(epsilon 1). What else was spent on the data set is not known here: no ledger was given."
    )


def test_sampling_error_below_the_noise_floor_is_an_upper_bound(made: Made, study: dpc.Study) -> None:
    report = Report.of(made(sampling_is_a_bound=True), study, date=DAY)
    assert "from at most ± 0.59 to ± 0.82" in dict(part(report, "summary").items)["Precision"]


def test_report_without_an_interval_claims_none(made: Made, study: dpc.Study) -> None:
    why = "noise hides it; use more epsilon"
    report = Report.of(made(no_interval=why, unadjusted=("race",)), study, date=DAY)
    assert report.verdict.text.endswith("so nothing follows from it: noise hides it; use more epsilon.")
    assert why in dict(part(report, "result").items)["95 % interval"]
    assert "there is no valid confidence interval" in part(report, "methods").paragraphs[0]
    assert "accounts for" not in part(report, "methods").paragraphs[0]
    assert report.verdict.remedies


def test_confounding_is_not_asked_to_move_an_interval_that_includes_zero(made: Made, study: dpc.Study) -> None:
    near, far = (Report.of(made(estimate=each), study, date=DAY) for each in (0.3, 2.0))
    assert dict(part(near, "summary").items)["Confounding"].endswith("The interval includes 0 already.")
    assert "to make the interval include 0, one of at least" in dict(part(far, "summary").items)["Confounding"]


def test_design_without_adjustment_is_stated(made: Made, study: dpc.Study) -> None:
    plain = dataclasses.replace(study, estimator=dpc.DifferenceInMeans(), confounders={})
    report = Report.of(made(**like(plain)), plain, date=DAY)
    assert report.verdict.reason == "confounding"
    assert "adjusted for nothing: the arms may differ" in dict(part(report, "summary").items)["Design"]


def test_number_needed_to_treat_is_positive_and_says_which_way(made: Made, study: dpc.Study) -> None:
    schema = dataclasses.replace(study.schema, outcome=dpc.Binary("score"))
    study = dataclasses.replace(study, schema=schema)

    def needed(estimate: float) -> tuple[str, ...]:
        effect = made(estimate=estimate, sampling_sd=0.01, noise=(), risks=(0.3, 0.3 + estimate), **like(study))
        tables = part(Report.of(effect, study, date=DAY), "result").tables
        (line,) = (line for table in tables for line in table.lines if line[0].startswith("number needed"))
        return line

    assert needed(-0.1) == ("number needed to treat for one score fewer", "10", "8 to 12")
    assert needed(0.1) == ("number needed to treat for one score more", "10", "8 to 12")
    assert needed(0.01)[2] == "not bounded: the interval of the effect contains 0"


def test_inconclusive_verdict_comes_with_the_cheapest_remedy(made: Made, study: dpc.Study) -> None:
    report = Report.of(made(estimate=0.5, noise=(NoiseTerm("laplace", 1.0),), sampling_sd=0.1), study, date=DAY)
    assert dict(part(report, "summary").items)["What would help"].startswith(
        "If the estimate stayed the same, one of these: (1)\N{NO-BREAK SPACE}More epsilon"
    )


def test_impossible_estimate_comes_with_the_nearest_possible_value(made: Made, study: dpc.Study) -> None:
    items = dict(part(Report.of(made(estimate=-12.5), study, date=DAY), "result").items)
    assert items["estimate"].startswith("\N{MINUS SIGN}12.50 (as released")
    assert items["nearest possible value"] == "\N{MINUS SIGN}10.00"
    assert "nearest possible value" not in dict(part(Report.of(made(), study, date=DAY), "result").items)


def test_result_compares_planned_and_actual_precision(report: Report, study: dpc.Study) -> None:
    low, high = study.rehearsed(1_000).interval()
    assert report.planned == pytest.approx((high - low) / 2)
    assert "precision" in dict(part(report, "result").items)


def test_trial_has_no_sensitivity_to_confounding(made: Made, study: dpc.Study) -> None:
    trial = Report.of(made(), dataclasses.replace(study, design="trial"), date=DAY)
    assert trial.confounding is None
    assert part(trial, "confounding").paragraphs == ("Not computed: treatment was randomised.",)
    assert Report.of(made(), study, date=DAY).confounding is not None


def test_report_needs_only_an_effect(made: Made) -> None:
    html = Report.of(made(no_interval="too noisy", sampling_sd=None), date=DAY).to_html()
    check_harmless(html)
    assert "No study file was given" in html
    assert "too noisy" in html


def test_rehearsal_is_marked(study: dpc.Study) -> None:
    report = Report.of(study.rehearsed(n=500), study, date=DAY)
    assert report.title.startswith("Rehearsal: ")
    assert "estimate" not in dict(part(report, "result").items)
    assert "Expected cost" in report.to_html()


def test_page_without_matplotlib_says_what_to_install(
    vault: dpc.Vault, study: dpc.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect = study.estimator.estimate(vault, epsilon=1.0)
    report = Report.of(effect, study, vault.ledger, date=DAY)
    assert "<img" in report.to_html()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    html = report.to_html()
    assert "<img" not in html
    assert '<svg width="100%"' in html  # the picture of the first page needs no library
    assert "pip install &#x27;dpcausal[plots]&#x27;" in html


def test_ledger_summary_has_the_total(vault: dpc.Vault, study: dpc.Study) -> None:
    effect = study.estimator.estimate(vault, epsilon=1.0)
    dpc.DifferenceInMeans().estimate(vault, epsilon=2.0)
    report = Report.of(effect, study, vault.ledger, date=DAY)
    assert report.ledger_summary is not None
    assert (
        report.ledger_summary.total.epsilon,
        report.ledger_summary.remaining.epsilon,
        report.ledger_summary.receipts_found,
    ) == (
        3.0,
        7.0,
        1,
    )
    assert [payment.query for payment in report.ledger_summary.payments] == ["stratum_contrasts", "arm_moments"]
    items = dict(part(report, "privacy").items)
    assert items["this effect"].startswith("epsilon 1, delta 0")
    assert items["everything ever released"] == "epsilon 3, delta 0, in 2 answers"
    assert dict(part(report, "audit_trail").items)["receipts in this ledger"] == "1 of 1"


def test_diagnoses_are_listed_drawn_and_priced(made: Made, study: dpc.Study, schema: dpc.Schema) -> None:
    overlap, balance = (dpc.Overlap(covariates=["age"]), dpc.Balance(covariates=["age"]))
    rehearsal = dpc.Rehearsal(schema, n=50_000, confounding=0.0)
    passed = (
        as_released(overlap.estimate(rehearsal, epsilon=0.5)),
        as_released(balance.estimate(rehearsal, epsilon=0.25)),
    )
    failed = dataclasses.replace(passed[0], thin=(0.5, 0.6)), passed[1]
    effect = made(n=50_000)
    reports = {
        name: Report.of(effect, study, date=DAY, diagnoses=each) for name, each in (("yes", passed), ("no", failed))
    }
    summaries = {name: " ".join(text for _, text in part(each, "summary").items) for name, each in reports.items()}
    assert "a private check failed (overlap)" in summaries["no"]
    assert "a private check failed" not in summaries["yes"]
    assert [line[0] for line in part(reports["no"], "diagnostics").tables[0].lines] == ["overlap", "balance"]
    assert [line[2] for line in part(reports["no"], "diagnostics").tables[0].lines] == ["fails", "passes"]
    assert dict(part(reports["no"], "privacy").items)["diagnostics"].startswith("epsilon 0.75, delta 0; together")
    assert reports["no"].to_html().count("<img") == 2 + Report.of(effect, study, date=DAY).to_html().count("<img")
    kinds = [each["kind"] for each in json.loads(reports["no"].to_json())["diagnoses"]]
    assert kinds == ["overlap", "balance"]


@pytest.mark.parametrize(
    ("design", "names"),
    [
        ("trial", ["CONSORT 2025, by item", "NIST SP 800-226, by topic"]),
        ("observational", ["STROBE, by item", "TARGET, by item", "NIST SP 800-226, by topic"]),
    ],
)
def test_guidelines_fit_the_design_and_refer_to_existing_sections(
    made: Made, study: dpc.Study, design: Any, names: list[str]
) -> None:
    report = Report.of(made(), dataclasses.replace(study, design=design), date=DAY)
    known = {f"A{section.number}" for section in report.sections if section.number} | {"page 1"}
    tables = part(report, "guidelines").tables
    assert [table.caption for table in tables] == names
    for table in tables:
        for _, places in table.lines:
            assert places == "left to the authors" or set(places.split(", ")) <= known
    baseline = {"trial": "25, baseline data", "observational": "9, baseline data"}[design]
    # Without diagnostics there is no table of characteristics.
    assert (baseline, "left to the authors") in {line for table in tables for line in table.lines}


def test_study_digest_is_the_one_that_sites_approve(made: Made, study: dpc.Study) -> None:
    """The digest of the file's exact text, comments included."""
    text = f"# approved on Monday\n{study.to_toml()}"
    report = Report.of(made(), dpc.Study.from_toml(text), date=DAY)
    assert (
        hashlib.sha256(text.encode()).hexdigest()
        in dict(part(report, "audit_trail").items)["SHA-256 of the study file"]
    )
    assert json.loads(report.to_json())["study"] == text


def test_adjustment_is_taken_from_the_estimator(made: Made, study: dpc.Study) -> None:
    def adjusted(**changes: Any) -> list[tuple[str, str]]:
        changed = dataclasses.replace(study, **changes)
        report = Report.of(made(**like(changed)), changed, date=DAY)
        return [item for item in part(report, "question").items if item[0].startswith("adjusted for")]

    assert adjusted() == [("adjusted for race", "who is trained differs, and so do outcomes")]
    assert adjusted(confounders={}) == [("adjusted for race", "no reason given")]
    assert adjusted(confounders={}, estimator=dpc.DifferenceInMeans()) == [("adjusted for", "nothing")]


def test_report_counts_the_units_that_are_compared(made: Made, study: dpc.Study) -> None:
    def units(**changes: Any) -> str:
        report = Report.of(made(**changes), study, date=DAY)
        texts = [dict(part(report, "summary").items)["Comparison"], part(report, "methods").paragraphs[0]]
        found = {str(re.findall(r"(?:Among|study of) (.*?) units", text)[0]) for text in texts}
        assert len(found) == 1
        return found.pop()

    assert units() == units(compared=997.0, compared_sd=4.0) == "1,000"  # noise may hide three
    assert units(compared=700.0, compared_sd=4.0) == "about 700 (noisy) of 1,000"
    assert units(compared=997.0) == "997 of 1,000"


def test_methods_say_nothing_about_when_a_threshold_was_chosen(made: Made, study: dpc.Study) -> None:
    text = part(Report.of(made(), study, date=DAY, smallest_worthwhile_effect=0.5), "methods").paragraphs[0]
    assert "The smallest worthwhile effect was taken to be 0.5." in text
    assert "advance" not in text


def test_declared_columns_say_what_becomes_of_a_missing_outcome(made: Made, study: dpc.Study) -> None:
    """A unit without an outcome is outside the comparison, unless the outcome declares what it counts as."""
    assert study.schema.outcome_may_be_missing
    inputs = part(Report.of(made(), study, date=DAY), "inputs")
    missing = {line[1]: line[3] for line in inputs.tables[0].lines}
    assert missing["outcome"] == "outside the comparison"
    outcome = dataclasses.replace(study.schema.outcome, missing=4)
    complete = dataclasses.replace(study, schema=dataclasses.replace(study.schema, outcome=outcome))
    report = dataclasses.replace(Report.of(made(), study, date=DAY), study=complete)
    missing = {line[1]: line[3] for line in part(report, "inputs").tables[0].lines}
    assert missing["outcome"] == "4"


def test_adjustment_names_what_it_does_not_use_show_or_remove(made: Made, study: dpc.Study) -> None:
    study = dataclasses.replace(study, expected={})
    report = Report.of(made(), study, date=DAY)
    design = dict(part(report, "summary").items)["Design"]
    assert report.effect.left_in > 0
    for text in (
        "Declared, but not adjusted for: age.",
        "was not checked",
        "may be left in; the interval allows for it",
    ):
        assert text in design
    assert "Covariates that were declared and not used: age." in part(report, "methods").paragraphs[0]
    assert "Balance was not checked." in part(report, "methods").paragraphs[0]
    cut = dataclasses.replace(
        study, estimator=dpc.Stratification(by=("race", dpc.Cut("age", [30, 45])), cap=3), confounders={}
    )
    better = Report.of(made(**like(cut)), cut, date=DAY)
    assert 0 < better.effect.left_in < report.effect.left_in / 2
    assert "not adjusted for" not in dict(part(better, "summary").items)["Design"]


def test_confounding_that_is_left_in_is_named_as_the_reason_and_no_number_of_units_is_promised(
    made: Made, study: dpc.Study
) -> None:
    confounded = dataclasses.replace(study, expected={"confounding": 1.0})
    clear, report = (Report.of(made(estimate=1.2), each, date=DAY).verdict for each in (study, confounded))
    assert clear.kind == "higher"
    assert (report.kind, report.reason) == ("inconclusive", "confounding")
    assert "neither more units nor more epsilon" in " ".join(report.remedies)


def test_after_adjustment_needs_a_balance_that_passes(
    vault: dpc.Vault, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = dpc.InverseWeighting(covariates=["age", "race"])
    study = dpc.Study(name="s", question="?", schema=schema, estimator=estimator, epsilon=1.0)
    effect = estimator.estimate(vault, epsilon=1.0)
    clip = effect.clip
    assert clip is not None
    balance = dpc.Balance(["age", "race"], weighted_by=["age", "race"], clip=clip).estimate(vault, epsilon=1.0)
    assert BalanceTable.from_json(balance.to_json()) == balance
    for passes, words in ((True, ", after adjustment ("), (None, "was not shown"), (False, "was not shown")):
        monkeypatch.setattr(BalanceTable, "passes", passes)
        assert words in Report.of(effect, study, date=DAY, diagnoses=[balance]).verdict.text
    monkeypatch.setattr(BalanceTable, "passes", True)
    assert balance.weights is not None
    for other in (
        {"covariates": ("age",)},  # not of all that is adjusted for
        {"weights": None},  # by an older version
        {"weights": dataclasses.replace(balance.weights, covariates=("age",))},
        {"weights": dataclasses.replace(balance.weights, estimand="ATT")},
        {"weights": dataclasses.replace(balance.weights, clip=clip / 2)},
    ):
        report = Report.of(effect, study, date=DAY, diagnoses=[dataclasses.replace(balance, **other)])
        assert "with other weights than those of the estimate" in report.verdict.text
        assert "with other weights" in dict(part(report, "summary").items)["Design"]
    over_all = dataclasses.replace(effect, includes_missing=True)  # and weighted for having an outcome
    assert "with other weights" in Report.of(over_all, study, date=DAY, diagnoses=[balance]).verdict.text
    before = dpc.Balance(["age", "race"]).estimate(vault, epsilon=1.0)
    assert "balance was not checked" in Report.of(effect, study, date=DAY, diagnoses=[before]).verdict.text


def test_binary_outcome_has_the_e_value_of_its_risk_ratio(made: Made) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("treat", labels=("usual care", "training"), undeclared=0), outcome=dpc.Binary("score")
    )
    study = dpc.Study(name="a", question="b", schema=schema, estimator=dpc.DifferenceInMeans(), epsilon=1.0)
    numbers = {"estimate": 0.2, "sampling_sd": 0.03, "risks": (0.2, 0.4)}
    report = Report.of(made(**numbers, assumptions=schema.data_handling, **like(study)), study, date=DAY)
    assert report.confounding is not None
    assert report.confounding.e_value == pytest.approx(2 + 2**0.5)


@pytest.mark.parametrize(
    "estimator",
    [
        dpc.DifferenceInMeans(),
        dpc.RegressionAdjustment(covariates=["age"]),
        dpc.InverseWeighting(covariates=["age"]),
        dpc.DoublyRobust(covariates=["age"]),
    ],
)
def test_effect_has_the_means_that_it_compares(vault: dpc.Vault, estimator: Any) -> None:
    effect = estimator.estimate(vault, epsilon=8.0)
    assert effect.treated_mean - effect.control_mean == pytest.approx(effect.estimate)
    assert effect.control_mean == pytest.approx(4.0, abs=1.0)


def test_warnings_follow_the_verdict(made: Made, study: dpc.Study) -> None:
    report = Report.of(made(warnings=("every age is 38",)), study, date=DAY)
    assert part(report, "summary").items[0] == ("Warning", "every age is 38")
    assert json.loads(report.to_json())["effect"]["warnings"][0] == "every age is 38"


def test_sections_are_numbered_in_one_place(report: Report) -> None:
    first_page, appendix = report.sections[:2], report.sections[2:]
    assert [section.number for section in first_page] == [0, 0]
    assert [section.number for section in appendix] == list(range(1, len(appendix) + 1))
    for section in appendix:
        assert f">A{section.number}. {html_page.html_text(section.title)}</h3>" in report.to_html()
        assert not any(re.search(r"[Ss]ection A?\d", text) for text in section.paragraphs)


def test_interval_is_computed_once(
    made: Made, study: dpc.Study, sites: tuple[SiteShare, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    effect, computed, original = made(sites=sites), [], dpc.Effect.interval

    def interval(self: dpc.Effect, level: float = 0.95) -> tuple[float, float]:
        computed.append(self)
        return original(self, level)

    monkeypatch.setattr(dpc.Effect, "interval", interval)
    report = Report.of(effect, study, date=DAY)
    for write in (report.to_html, report.to_json):
        write()
    assert computed == [effect]


def test_report_states_the_data_version_and_the_date_of_payment(made: Made, study: dpc.Study) -> None:
    """A stored answer may be old."""
    receipt = Receipt("arm_moments", 1.0, 0.0, 2, "ab" * 32, on="2026-07-01", as_of="2026-06-30")
    effect = made(receipts=(receipt,))
    assert dpc.Effect.from_json(effect.to_json()).as_of == "2026-06-30"
    assert dpc.tidy(effect, full=True, backend="pyarrow")["as_of"].to_pylist() == ["2026-06-30"]
    for planned in (study, None):
        page = dpc.Report.of(effect, planned, date=date(2026, 9, 1)).to_html()
        assert "2026-06-30" in page
        assert "2026-07-01" in page


def test_effect_without_data_version_is_read(made: Made) -> None:
    document = json.loads(made().to_json())
    for receipt in document["receipts"]:
        del receipt["on"], receipt["as_of"]
    assert dpc.Effect.from_json(json.dumps(document)) == made()


def test_report_does_not_claim_an_adjustment_that_a_warning_doubts(made: Made, study: dpc.Study) -> None:
    sure, unsure = (Report.of(made(unadjusted=names), study, date=DAY) for names in ((), ("race",)))
    assert ", adjusted (95 %" in sure.verdict.text
    assert "adjusted (95 %" not in unsure.verdict.text
    assert "perhaps not adjusted for race" in unsure.verdict.text
    assert "adjusted for race." in part(sure, "methods").paragraphs[0]
    assert (
        "The analysis adjusted for nothing. It may not have adjusted for race." in part(unsure, "methods").paragraphs[0]
    )
    design = dict(part(unsure, "summary").items)["Design"]
    assert "adjusted for nothing" in design
    assert "Perhaps not adjusted for: race." in design


def test_cell_without_a_heading_has_no_colon_on_a_phone(made: Made, study: dpc.Study) -> None:
    """The first column of Table 1 has no heading, and phones showed ": age" for its cells."""
    html = Report.of(made(), study, date=DAY).to_html()
    assert 'td[data-label=""]::before { content: none; }' in html
