"""Every text that an estimator records has a template, and so a translation."""

import pytest

from dpcausal.audit.targets import TARGETS, Target
from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.page.language import ENGLISH, Language
from dpcausal.rehearsal import Rehearsal
from dpcausal.results.effect import Effect

GERMAN = Language("de")


def recorded(result: object) -> list[str]:
    """The texts of a result that a report shows."""
    if isinstance(result, BalanceTable | OverlapTable):
        return [result.found]
    if not isinstance(result, Effect):
        return []
    texts = (result.estimand, result.method, *result.assumptions, *result.notes, result.no_interval, result.quantity)
    return [text for text in (*texts, result.guarantee.neighbours) if text]


@pytest.mark.parametrize("n", [4_000, 60])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_texts_of_estimators_are_translated(target: Target, n: int) -> None:
    found = target.ask(Rehearsal(target.schema, n=n))
    texts = [text for each in (found if isinstance(found, tuple | list) else [found]) for text in recorded(each)]
    assert [text for text in texts if GERMAN.recorded(text) == text] == []
    assert [ENGLISH.recorded(text) for text in texts] == texts


def test_values_keep_their_place_and_numbers_change_their_separators() -> None:
    text = "strata count as about 3,967 of 4,000.5 units (noisy)"
    assert GERMAN.recorded(text) == "die Strata zählen wie etwa 3.967 von 4.000,5 Einheiten (verrauscht)"
    assert GERMAN.recorded("no confounders but risk, mean") == "keine Confounder außer risk, mean"  # names stay
    text = "random effects over 3 of 4 sites; at each: difference in means, noisy arm sizes"
    assert GERMAN.recorded(text).endswith("an jedem: Differenz der Mittelwerte, verrauschte Gruppengrößen")


def test_text_without_a_template_stays_as_it_is() -> None:
    assert GERMAN.recorded("a text of somebody else's estimator") == "a text of somebody else's estimator"
    assert GERMAN.recorded("no confounders but " + "x" * 10_000).startswith("no confounders")
