"""A private propensity score, as a public function of covariates."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee, exact
from dpcausal.queries.features import covariates_named, feature_names
from dpcausal.queries.profiles import codes_of, shown_as
from dpcausal.queries.query import GRID
from dpcausal.release import Receipt, Release, units_of
from dpcausal.results.printed import PrintedResult
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Array
from dpcausal.utils.documents import json_of, read_as
from dpcausal.utils.other_names import OtherNames
from dpcausal.utils.plain_text import check_plain_text, printed_texts
from dpcausal.utils.text import format_number, table_rows
from dpcausal.utils.validation import is_number

SCORE_QUERIES = ("bounded_influence_logistic", "objective_perturbed_logistic", "output_perturbed_logistic")
"""The names of the queries whose releases are scores."""

_FARTHEST = 30.0
"""Log-odds beyond this count as this: the score is 0 or 1 to 13 digits."""


@dataclass(frozen=True, kw_only=True)
class PropensityScore(PrintedResult, OtherNames):
    """The probability of treatment for any profile of covariates. Public: predicting costs nothing, however often.

    It is computed from a release that is paid for. What it predicts for a unit is as private as that unit's covariates:
    publish predictions for public profiles only.

    Attributes:
        arms: The two arms, control first.
        schema: The public declaration of the table.
        n: The number of units, which is public.
        release: The noisy coefficients, which `InverseWeighting`, `Overlap` and `Balance` use again for nothing.
        method: The method, in words.
        noise_sd: The expected standard deviation of the privacy noise in the log-odds, from public numbers.
        ridge: The ridge as a share of the expected information: about how far coefficients are shrunk towards 0.
        notes: Further notes for the reader.
        counts: The receipt of the counts that scales of covariates come from, where they were needed.
    """

    _instead: ClassVar[Mapping[str, str]] = {
        "fit": "it is fitted already: write score.predict(profiles). A new one: PropensityModel(...).estimate(vault, "
        "epsilon=1.0).",
        "predict_proba score_samples transform": "write score.predict(profiles): one probability a profile.",
        "coef coef_ params intercept intercept_": "write score.coefficients.",
        "summary describe show": "write print(score).",
        "to_frame to_pandas to_dict": "write dpcausal.tidy(score), or score.to_json().",
    }

    arms: tuple[str, str]
    schema: Schema
    n: int
    release: Release
    method: str
    noise_sd: float
    ridge: float
    notes: tuple[str, ...] = ()
    counts: tuple[Receipt, ...] = ()

    def __post_init__(self) -> None:
        check_plain_text("texts of a propensity score", printed_texts(self))

    @property
    def covariates(self) -> tuple[str, ...]:
        """The names of the covariates."""
        return tuple(self.release.query.covariates)  # type: ignore[attr-defined]

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of the score and of the scales of its covariates."""
        epsilon, delta = (
            float(sum(exact(getattr(receipt, part)) for receipt in self.receipts)) for part in ("epsilon", "delta")
        )
        return replace(self.release.guarantee, epsilon=epsilon, delta=delta)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The queries and their prices."""
        return (*self.counts, self.release.receipt)

    @property
    def coefficients(self) -> dict[str, float]:
        """The coefficients of an ordinary logistic regression, noise included.

        Of a number for one unit of measurement, or of score where it has a scale; of two values for the second against
        the first; of more values for each of them. The intercept is the log-odds where all of these are 0.
        """
        found = dict(zip(self.release.names, np.array(self.release.values) / self._root, strict=True))
        for column in self._columns:
            if isinstance(column, Real):
                _, middle, half = shown_as(column)
                found[column.name] /= half
                found["intercept"] -= found[column.name] * middle
            elif len(column.values) == 2:
                found["intercept"] -= found[column.name]
                found[column.name] *= 2
        return {name: float(each) for name, each in found.items()}

    def predict(self, X: object, *, clip: float = 0.0) -> Array:  # noqa: N803 (as in scikit-learn)
        """Return the propensity score at each profile.

        Args:
            X: Profiles: a dataframe or mapping with a column for each covariate, or a table with a column for each
                covariate in turn. A number outside its range counts as the nearer bound, an absent value as the
                declared missing value, as in the vault.
            clip: Scores are clipped to clip and 1 - clip, as estimators clip them.
        """
        if not (is_number(clip) and 0 <= clip < 0.5):
            raise QueryError(
                expected="a clip from 0 to below 0.5", got=repr(clip), hint="0.1 is usual; 0 leaves scores as they are."
            )
        codes = codes_of(X, self._columns)
        logits = np.full(len(next(iter(codes.values()))), self.release.values[0])
        coefficients = iter(self.release.values[1:])
        for column in self._columns:
            line = codes[column.name]
            if isinstance(column, Real):
                logits += next(coefficients) * line / GRID
            elif len(column.values) == 2:
                logits += next(coefficients) * (2 * line - 1)
            else:
                logits += np.array([next(coefficients) for _ in column.values])[line]
        scores: Array = 1 / (1 + np.exp(-np.clip(logits / self._root, -_FARTHEST, _FARTHEST)))
        return np.clip(scores, clip, 1 - clip)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return covariates_named(self.covariates, self.schema)

    @property
    def _root(self) -> float:
        """What features are divided by in the query, to have a length of at most 1."""
        return math.sqrt(len(self.covariates) + 1)

    def _name(self) -> str:
        return f"Propensity score of {self.arms[1]} against {self.arms[0]}"

    def _table(self) -> list[tuple[str, str]]:
        table = table_rows("WARNING", self.guarantee.warnings)
        if not self.rehearsed:
            lines = (f"{name}: {format_number(each)}" for name, each in self.coefficients.items())
            table += table_rows("coefficients", tuple(lines))
        return [
            *table,
            ("privacy noise", f"expect {format_number(self.noise_sd)} in the log-odds (standard deviation)"),
            ("ridge", f"about {self.ridge:.1%} of the information in the table"),
            *units_of(self.n, self.receipts),
            ("method", self.method),
            ("privacy", str(self.guarantee)),
            *self._last_lines(),
        ]

    def to_json(self) -> str:
        """Return the score as JSON, without loss."""
        document = {name: getattr(self, name) for name in ("arms", "n", "method", "noise_sd", "ridge", "notes")}
        document |= {"schema": self.schema.to_dict(), "release": json.loads(self.release.to_json())}
        document |= {"counts": [asdict(receipt) for receipt in self.counts]}
        return json.dumps(document, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | Path) -> Self:
        """Read a score that `to_json` wrote, from its text or from the file at a `Path`."""
        document = json_of("a score", cls, text)
        document["schema"] = Schema.from_dict(document["schema"])
        document["release"] = Release.from_json(json.dumps(document["release"]))
        score: Self = read_as(cls, document)
        return score


def score_release(score: "PropensityScore | Release", covariates: tuple[str, ...], schema: Schema) -> Release:
    """Return the release of a score of these covariates, to use again."""
    release = score.release if isinstance(score, PropensityScore) else score
    asked = getattr(release, "query", None)
    known = getattr(asked, "name", "") in SCORE_QUERIES
    if not known or tuple(asked.covariates) != covariates:  # type: ignore[union-attr]
        raise QueryError(
            expected=f"a score of {', '.join(covariates)}",
            got=f"one of {', '.join(getattr(asked, 'covariates', ()) or ('something else',))}",
            hint="omit score to release a new one for a share of epsilon.",
        )
    columns = (covariates_named(covariates, each) for each in (schema, getattr(score, "schema", schema)))
    if next(columns) != next(columns) or release.names != feature_names(covariates, schema):
        raise QueryError(
            expected="a score with covariates declared as in this schema",
            got="one with other bounds or values",
            hint="coefficients are in terms of bounds: release a score with this schema.",
        )
    return release
