"""Nothing that is declared, typed or loaded can steer the terminal that it is printed on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import SchemaError, StudyError
from dpcausal.federation.site.audit_log import AuditLog
from dpcausal.results.site_share import SiteShare
from dpcausal.testing import standard_schema
from dpcausal.utils.plain_text import is_plain_text
from tests.support.site_folders import example_study

ESCAPES = {
    "terminal escape": "drug\x1b[2J\x1b]0;owned\x07",
    "C1 escape": "drug\x9b2J",
    "delete": "drug\x7f",
    "line break": "drug\n95 % interval  1 to 2",
    "carriage return": "drug\rplacebo",
    "tab": "drug\t",
    "line separator": "drug\u2028",
    "paragraph separator": "drug\u2029",
    "right to left override": "drug\u202eobecalp",
    "isolate": "drug\u2066",
    "zero width": "dr\u200bug",
    "next line": "drug\x85",
    "filler": "dr\u3164ug",
    "variation selector": "drug\ufe0f",
    "joiner of graphemes": "dr\u034fug",
    "blank of Braille": "dr\u2800ug",
    "tag": "drug\U000e0041",
    "half a surrogate pair": "drug\ud800",
}
STUDY = example_study(standard_schema())
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Real("x", 0, 1)]
)


@pytest.mark.parametrize("text", ["50 mg, täglich", "été", "肝素", "5\u00a0mg", "a|b", "Ω ≥ 3", "🙂", ""])
def test_ordinary_text_is_plain(text: str) -> None:
    assert is_plain_text(text)


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize(
    "declare",
    [
        lambda text: dpc.Real(text, 0, 1),
        dpc.Binary,
        lambda text: dpc.Binary("t", values=("control", text)),
        lambda text: dpc.Binary("t", labels=("control", text)),
        lambda text: dpc.Category("ward", ["a", text]),
        lambda text: dpc.Category(text, ["a", "b"]),
        lambda text: dpc.Unit(text, by="visit"),
        lambda text: dpc.Unit("patient", by=text),
    ],
)
def test_declarations_with_control_characters_are_refused(declare: Any, name: str) -> None:
    with pytest.raises(SchemaError) as refused:
        declare(ESCAPES[name])
    assert is_plain_text(str(refused.value).replace("\n\n", " "))


@pytest.mark.parametrize("name", ESCAPES)
def test_effects_and_curves_with_control_characters_are_refused(name: str) -> None:
    text = ESCAPES[name]
    effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(SCHEMA, n=1_000), epsilon=1.0)
    share = SiteShare(site=text, status="answered")
    for change in ({"arms": ("a", text)}, {"outcome": text}, {"notes": (text,)}, {"sites": (share,)}):
        with pytest.raises(SchemaError, match="control characters"):
            replace(effect, **change)
    learner = dpc.RLearner(covariates=["x"], basis=dpc.Polynomial(["x"]), propensity=0.5)
    curve = learner.estimate(dpc.Rehearsal(SCHEMA, n=1_000), epsilon=1.0)
    with pytest.raises(SchemaError, match="control characters"):
        replace(curve, arms=("a", text))


@pytest.mark.parametrize("name", [name for name in ESCAPES if name not in {"line break", "tab"}])
def test_studies_with_hidden_characters_in_a_comment_are_refused(name: str) -> None:
    text = STUDY.to_toml()
    assert Study.from_toml(f"# a comment\twith a tab\r\n{text}") == STUDY
    for place in (f"# {ESCAPES[name]} epsilon = 0.1\n{text}", f"{text}# {ESCAPES[name]}"):
        with pytest.raises(StudyError, match="invisible characters") as refused:
            Study.from_toml(place)
        assert is_plain_text(str(refused.value).replace("\n\n", " "))


@pytest.mark.parametrize("name", [name for name in ESCAPES if "surrogate" not in name])
@pytest.mark.parametrize(
    "words",
    [
        ["site", "people", "add", "folder", "{}", "--role", "approver"],
        ["site", "approve", "folder", "ab12", "--why={}"],
        ["site", "init", "{}", "north"],
        ["site", "init", "folder", "{}"],
        ["federation", "admit", "folder", "{}", "key", "--units-unknown"],
        ["run", "study.toml", "--table", "{}"],
        ["plan", "{}"],
    ],
)
def test_no_control_character_typed_on_the_command_line_is_printed(words: list[str], name: str) -> None:
    told = CliRunner().invoke(app, [word.format(ESCAPES[name]) for word in words])
    assert told.exit_code == 2
    assert ESCAPES[name] not in told.output
    assert all(map(is_plain_text, told.output.split("\n")))


@pytest.mark.parametrize("name", ESCAPES)
def test_audit_log_refuses_control_characters(name: str, tmp_path: Path) -> None:
    audit_log = AuditLog(tmp_path / "audit_log.jsonl")
    for who, why in ((ESCAPES[name], ""), ("anna", ESCAPES[name])):
        with pytest.raises(StudyError, match="control characters"):
            audit_log.write("people", "ab12", who, why)
