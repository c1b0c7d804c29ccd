import json
import re
from pathlib import Path

import pytest

import dpcausal as dpc
from checks import translations
from dpcausal.errors import RefusedError
from dpcausal.page.language import Language
from dpcausal.page.recorded import RECORDED
from tests.report.examples import EXAMPLES


@pytest.fixture(scope="module")
def wanted() -> dict[str, str]:
    return translations.texts()


def test_german_is_complete_and_compiled(wanted: dict[str, str]) -> None:
    assert list(translations.faults("de", wanted)) == []
    assert len(wanted) > 300


def test_incomplete_stale_and_wrong_catalogues_are_caught(wanted: dict[str, str], tmp_path: Path) -> None:
    some = {text: file for text, file in wanted.items() if text != "Reasons"}
    translations.write("de", wanted, tmp_path)
    assert any("not translated: 'Reasons'" in fault for fault in translations.faults("de", wanted, tmp_path))
    path, binary = translations.files("de", tmp_path)
    path.write_text(translations.files("de")[0].read_text("utf-8"), "utf-8")
    assert list(translations.faults("de", wanted, tmp_path)) == [
        "de: the compiled catalogue is not current: run python -m checks.translations --write"
    ]
    binary.write_bytes(translations.compiled(translations.read("de", tmp_path)))
    assert list(translations.faults("de", wanted, tmp_path)) == []
    assert list(translations.faults("de", some, tmp_path)) == ["de: no longer used: 'Reasons'"]
    path.write_text(path.read_text("utf-8").replace('"Datenstand {date}."', '"Datenstand {day}."'), "utf-8")
    assert "de: other names in braces: 'Data as of {date}.'" in set(translations.faults("de", wanted, tmp_path))


def test_unknown_language_is_refused() -> None:
    with pytest.raises(RefusedError, match="en or de"):
        Language("tlh")


def test_text_in_braces_is_not_read_as_a_name() -> None:
    assert Language("de")("Data as of {date}.", date="{0.__class__}") == "Datenstand {0.__class__}."


@pytest.mark.parametrize("value", [0.0, -0.0, 0.00001, 1.5, -1234.5678, 1e9])
def test_numbers_differ_between_languages_in_their_separators_only(value: float) -> None:
    swapped = Language("en").number(value, 2).translate({ord(","): ".", ord("."): ","})
    assert Language("de").number(value, 2) == swapped


def test_nothing_rounds_to_minus_zero() -> None:
    assert Language().number(-0.0001, 2) == "0.00"
    assert Language().number(float("-inf")) == "\N{MINUS SIGN}∞"


@pytest.mark.parametrize("name", EXAMPLES)
def test_german_report_has_no_english_text_of_its_own(name: str, wanted: dict[str, str]) -> None:
    """Texts of the package that are shown in German and the same in English are the ones that are the same words."""
    english, german = (json.loads(EXAMPLES[name](language=code).to_json())["sections"] for code in ("en", "de"))
    same = set(translations.texts()) & {
        text for section in german for text in (section["title"], *section["paragraphs"], *section["notes"])
    }
    assert same <= {text for text in wanted if Language("de").recorded(text) == text}
    assert [section["key"] for section in english] == [section["key"] for section in german]
    labels = {label for section in german for label, _ in section["items"]}
    assert labels.isdisjoint({"estimate", "units", "Question", "Precision", "budget"})


def test_german_numbers_have_decimal_commas() -> None:
    text = EXAMPLES["trial"](language="de").verdict.text
    assert "0,99 höher" in text
    assert not re.search(r"\d\.\d", text)


def test_recorded_texts_are_those_of_estimators() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Real("score", 0, 10), covariates=[])
    binary = dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Binary("died"), covariates=[])
    for each in (schema, binary):
        effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(each, n=500), epsilon=1.0)
        assert {effect.estimand, effect.method, effect.guarantee.neighbours, *effect.assumptions[:2]} <= set(RECORDED)
