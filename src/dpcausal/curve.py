"""An effect that varies between units, as a function that can be asked for ever."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpcausal.cells import Value
from dpcausal.columns import Column
from dpcausal.effect import as_of, format_receipt, printed_texts, units_of
from dpcausal.errors import QueryError, RefusedError
from dpcausal.guarantee import Guarantee
from dpcausal.interval import Family, critical_values, simulated
from dpcausal.other_names import OtherNames
from dpcausal.plain_text import check_plain_text
from dpcausal.queries import Basis, Cells, Points
from dpcausal.queries.basis import basis_of, basis_values
from dpcausal.queries.profiles import Codes, by_covariate, codes_of
from dpcausal.real import Real
from dpcausal.release import Receipt
from dpcausal.schema import Schema
from dpcausal.source import Source
from dpcausal.text import format_number, html_table, table_rows, text_table
from dpcausal.validation import is_number

Array = NDArray[np.float64]
Matrix = tuple[tuple[float, ...], ...]

_AT_ONCE = 2**15
_DRAWS = 20_000


@dataclass(frozen=True, kw_only=True)
class EffectCurve(OtherNames):
    """The estimated effect for any profile of covariates. Public: asking it costs nothing, however often.

    The effect of a profile is the sum of weights times public functions of it. Everything here was made from releases
    that are paid for; profiles are public too, and must not be taken from a private table.

    Attributes:
        estimand: What is estimated, in words.
        arms: The two arms that are compared, control first.
        outcome: The outcome's name.
        schema: What is public about the table.
        basis: The functions.
        weights: Their weights, noise included.
        sampling: The weights' covariance but for the privacy noise in them: by sampling, and by how far effects may
            vary where noise hides it and the curve is drawn flat. 0 where it is not told; then `no_interval` says so.
        privacy: The covariance of the privacy noise in them; 0 where the size of the noise is itself private.
        family: The distribution of that noise.
        parts: Of how many independent parts of one size the noise of each weight is made, at least.
        n: The number of units, which is public.
        method: The estimator, in words.
        guarantee: What is promised about everything that this was made from, taken together.
        assumptions: What must hold for the estimate to mean the estimand.
        receipts: What was asked and paid.
        notes: What a reader should know besides.
        no_interval: Why there are no intervals; empty where there are.
    """

    _instead: ClassVar[Mapping[str, str]] = {
        "conf_int confint interval confidence_interval": "write curve.effect_interval(profiles).",
        "summary describe show": "write print(curve).",
        "estimate value params coef_": "write curve.effect(profiles), or curve.ate(profiles).",
    }

    estimand: str
    arms: tuple[str, str]
    outcome: str
    schema: Schema
    basis: Basis
    weights: tuple[float, ...]
    sampling: Matrix
    privacy: Matrix
    family: Family
    n: int
    method: str
    guarantee: Guarantee
    assumptions: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    notes: tuple[str, ...] = ()
    no_interval: str = ""
    parts: int = 1

    def __post_init__(self) -> None:
        check_plain_text("texts of a curve", printed_texts(self))

    @classmethod
    def of(cls, source: Source, *, notes: tuple[str, ...] = (), **told: Any) -> Self:  # noqa: ANN401 (as the attributes)
        """A curve from a source, with what is told about it besides."""
        schema = source.schema
        return cls(
            arms=schema.treatment.labels_or_values,
            outcome=schema.outcome.name,
            schema=schema,
            n=source.n,
            notes=(*notes, *source.caveats),
            **told,
        )

    def effect(self, X: object, *, T0: object = None, T1: object = None) -> Array:  # noqa: N803 (as in EconML)
        """The effect at each profile.

        Args:
            X: Public profiles: a dataframe or mapping with a column for each covariate, or a table with a column for
                each covariate of the basis in turn. A number outside its range counts as the nearer bound. A curve of
                effects at some profiles (`at`) answers any other with the nearest of these.
            T0: The control arm as the schema writes it, for code that is written for EconML; no other is known.
            T1: The treated arm, likewise.
        """
        self._check_arms(T0, T1)
        weights = np.array(self.weights)
        return np.concatenate([values @ weights for values in self._values(X)])

    def standard_errors(self, X: object) -> tuple[Array, Array]:  # noqa: N803
        """The standard errors of the effect at each profile: by sampling (see `sampling`), and by privacy noise."""
        errors = [self._errors(values) for values in self._values(X)]
        return np.concatenate([each[0] for each in errors]), np.concatenate([each[1] for each in errors])

    def effect_interval(
        self,
        X: object,  # noqa: N803
        *,
        T0: object = None,  # noqa: N803
        T1: object = None,  # noqa: N803
        alpha: float = 0.05,
        simultaneous: bool = False,
    ) -> tuple[Array, Array]:
        """Bounds of the effect at each profile that account for sampling and for privacy noise.

        Args:
            X: Public profiles.
            T0: As for `effect`.
            T1: As for `effect`.
            alpha: How often an interval may miss; 0.05 for 95 % intervals.
            simultaneous: Whether all intervals are to hold together that often, and not only each by itself.

        Raises:
            RefusedError: Where no interval could be shown to cover; the message says why.
        """
        self._check_interval(alpha)
        effect, errors = self.effect(X, T0=T0, T1=T1), self.standard_errors(X)
        return self._bounds(effect, errors, alpha, self._simultaneous(X, alpha) if simultaneous else None)

    def ate(self, X: object, *, T0: object = None, T1: object = None) -> float:  # noqa: N803
        """The mean effect over public profiles; not over the table's units, whose profiles nobody knows."""
        return float(self.effect(X, T0=T0, T1=T1).mean())

    def ate_interval(
        self,
        X: object,  # noqa: N803
        *,
        T0: object = None,  # noqa: N803
        T1: object = None,  # noqa: N803
        alpha: float = 0.05,
    ) -> tuple[float, float]:
        """Bounds of the mean effect over public profiles, as `effect_interval` has them of each."""
        self._check_interval(alpha)
        effects = self.effect(X, T0=T0, T1=T1)
        mean = np.sum([values.sum(axis=0) for values in self._values(X)], axis=0, keepdims=True) / len(effects)
        low, high = self._bounds(effects.mean(keepdims=True), self._errors(mean), alpha)
        return float(low[0]), float(high[0])

    def _errors(self, values: Array) -> tuple[Array, Array]:
        """Standard errors by sampling and by privacy noise, for the functions of some profiles."""
        sampling, privacy = (
            np.sqrt(np.maximum(((values @ np.array(matrix)) * values).sum(axis=1), 0.0))
            for matrix in (self.sampling, self.privacy)
        )
        return sampling, privacy

    def _bounds(
        self, effect: Array, errors: tuple[Array, Array], alpha: float, times: float | None = None
    ) -> tuple[Array, Array]:
        """So many standard errors to either side, or as many as it takes for each effect by itself."""
        error = np.hypot(*errors)
        shares = np.divide(errors[1], error, out=np.zeros_like(error), where=error > 0)
        half = error * (critical_values(self.family, shares, 1 - alpha, self.parts) if times is None else times)
        # No effect is beyond the outcome's range, whichever way.
        low, high = self.schema.outcome_bounds
        return np.maximum(effect - half, np.minimum(effect, low - high)), np.minimum(
            effect + half, np.maximum(effect, high - low)
        )

    def _check_interval(self, alpha: float) -> None:
        if self.no_interval:
            raise RefusedError(
                expected="a curve that carries intervals",
                got=f"none: {self.no_interval}",
                hint="print the curve to read what it can tell.",
            )
        if not (is_number(alpha) and 0 < alpha < 1):
            raise RefusedError(expected="an alpha between 0 and 1", got=repr(alpha), hint="0.05 gives 95 % intervals.")

    def _check_arms(self, *given: object) -> None:
        arms = self.schema.treatment.compared
        for name, arm, declared in zip(("T0", "T1"), given, arms, strict=True):
            if arm is not None and not (np.isscalar(arm) and arm == declared):
                raise QueryError(
                    expected=f"{name}={declared!r}, or none: the curve compares {arms[1]!r} with {arms[0]!r}",
                    got=f"{name}={arm!r}",
                    hint="leave T0 and T1 out; for the other way round change the sign.",
                )

    def predict(self, X: object) -> Array:  # noqa: N803
        """The same as `effect`, under the name that scikit-learn asks a fitted regressor by."""
        return self.effect(X)

    def fit(self, *_: object, **__: object) -> NoReturn:
        """Refused: scikit-learn fits as often as it likes, and learning a curve has its price each time."""
        raise RefusedError(
            expected="a curve that was learned already",
            got="a request to fit it",
            hint="for a new curve ask a learner: learner.estimate(vault, epsilon=…). Where scikit-learn must call fit, "
            "wrap the curve in its FrozenEstimator.",
        )

    def __sklearn_tags__(self) -> object:
        """What scikit-learn should know: this is a regressor, and needs no fit."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags  # noqa: PLC0415 (scikit-learn asks)

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=False),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(categorical=True, string=True, allow_nan=True),
            requires_fit=False,
        )

    def ranking(self, X: object) -> NDArray[np.int64]:  # noqa: N803
        """The places of profiles, from the largest effect to the smallest."""
        return np.argsort(-self.effect(X), kind="stable")

    def policy_value(self, X: object, *, cost: float = 0.0) -> float:  # noqa: N803
        """What treating the profiles whose effect is above a cost gains on average over all of them, cost taken off.

        The gain is told by the same noisy effects that choose whom to treat, so it is too large on average.
        """
        if not is_number(cost):
            raise QueryError(expected="a number as cost", got=repr(cost), hint="in the outcome's own terms.")
        return float(np.maximum(self.effect(X) - cost, 0.0).mean())

    def _values(self, profiles: object) -> Iterator[Array]:
        """The functions of profiles, some at a time."""
        codes = codes_of(profiles, self.basis.reads(self.schema))
        size = len(next(iter(codes.values())))
        if size == 0:
            raise QueryError(expected="one or more profiles", got="none", hint="give at least one.")
        for start in range(0, size, _AT_ONCE):
            part: Codes = {name: line[start : start + _AT_ONCE] for name, line in codes.items()}
            yield basis_values(self.basis, part, self.schema)

    def _simultaneous(self, profiles: object, alpha: float) -> float:
        """By how many standard errors the worst of all profiles is off, in all but alpha of cases."""
        normal = simulated("gaussian", [1.0] * len(self.weights), 2 * _DRAWS)[:_DRAWS]
        size = (0.5 if self.family == "laplace" else 1.0) / self.parts  # of one part's variance
        noise = simulated(self.family, [math.sqrt(size)] * len(self.weights), (1 + self.parts) * _DRAWS)[_DRAWS:]
        noise = noise.reshape(self.parts, _DRAWS, -1).sum(axis=0)
        drawn = normal @ _root(self.sampling).T + noise @ _root(self.privacy).T
        worst = np.zeros(_DRAWS)
        total = np.array(self.sampling) + np.array(self.privacy)
        for values in self._values(profiles):
            for some in np.array_split(values, max(len(values) // 256, 1)):
                error = np.sqrt(np.maximum(((some @ total) * some).sum(axis=1), 1e-300))
                worst = np.maximum(worst, np.abs(drawn @ (some / error[:, None]).T).max(axis=1))
        return float(np.quantile(worst, 1 - alpha))

    @property
    def as_of(self) -> str | None:
        """The version of the data that was asked, where it has a name."""
        return as_of(self.receipts)

    @property
    def rehearsed(self) -> bool:
        """Whether this came from a rehearsal: the widths are what to expect, the effects are placeholders."""
        return all(receipt.digest is None for receipt in self.receipts)

    def examples(self) -> tuple[list[str], dict[str, list[Value]]]:
        """A few public profiles, with names: all groups or points, or each covariate in turn over its range."""
        columns = self.basis.reads(self.schema)
        if isinstance(self.basis, Cells):
            names, profiles = list(self.basis.names(self.schema)), self.basis.profiles(self.schema)
        elif isinstance(self.basis, Points):
            profiles = [tuple(profile) for profile in self.basis.at]
            names = [named(dict(zip(self.basis.covariates, profile, strict=True))) for profile in profiles]
        else:
            values = [_examples(column) for column in columns]
            middle = tuple(each[len(each) // 2] for each in values)
            names, profiles = [named(dict(zip([column.name for column in columns], middle, strict=True)))], [middle]
            for place, column in enumerate(columns):
                for value in (each for each in values[place] if each != middle[place]):
                    name = named({column.name: value})
                    names.append(name if len(columns) == 1 else f"the same with {name}")
                    profiles.append((*middle[:place], value, *middle[place + 1 :]))
        return names, by_covariate([column.name for column in columns], profiles)

    def __str__(self) -> str:
        return text_table(self._title(), self._table())

    def _repr_html_(self) -> str:
        """The same table for a notebook."""
        return html_table(self._title(), self._table())

    def _title(self) -> str:
        by = ", ".join(column.name for column in self.basis.reads(self.schema))
        title = f"Effect of {self.arms[1]} against {self.arms[0]} on {self.outcome}, by {by}"
        return f"Rehearsal (no data read, nothing spent): {title}" if self.rehearsed else title

    def _table(self) -> list[tuple[str, str]]:
        table = [*table_rows("WARNING", self.guarantee.warnings), ("estimand", self.estimand), *self._effects()]
        if self.no_interval:
            table.append(("interval", f"none: {self.no_interval}"))
        table += [*units_of(self.n, self.receipts), ("method", self.method), ("privacy", str(self.guarantee))]
        table += table_rows("assumes", self.assumptions)
        table += table_rows("note", self.notes)
        table += table_rows("price" if self.rehearsed else "paid", tuple(map(format_receipt, self.receipts)))
        return table

    def _effects(self) -> list[tuple[str, str]]:
        """The effects of the example profiles, with intervals that hold for all of them together."""
        names, profiles = self.examples()
        effects, (sampling, privacy) = self.effect(profiles), self.standard_errors(profiles)
        lines = []
        intervals = None if self.no_interval else self.effect_interval(profiles, simultaneous=True)
        for place, name in enumerate(names):
            errors = f"sampling {format_number(float(sampling[place]))}, privacy {format_number(float(privacy[place]))}"
            if intervals is None:
                noise = (
                    f"privacy noise {format_number(float(privacy[place]))}"
                    if privacy[place]
                    else "noise of private size"
                )
                text = f"{format_number(float(effects[place]))} ({noise})"
            elif self.rehearsed:
                text = f"± {format_number(float(intervals[1][place] - intervals[0][place]) / 2)} ({errors})"
            else:
                low, high = (format_number(float(side[place])) for side in intervals)
                text = f"{format_number(float(effects[place]))}, {low} to {high} ({errors})"
            lines.append(f"{name}: {text}")
        if intervals is not None:
            lines.append("intervals hold for all of these together at 95 %")
        return table_rows("effects", tuple(lines))

    def to_json(self) -> str:
        """The curve as JSON, without loss."""
        document = {part.name: getattr(self, part.name) for part in fields(self)}
        document |= {"schema": self.schema.to_dict(), "basis": asdict(self.basis)}  # type: ignore[call-overload]
        document |= {"guarantee": self.guarantee.to_dict(), "receipts": [asdict(each) for each in self.receipts]}
        return json.dumps(document, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The curve that `to_json` wrote."""
        document: dict[str, Any] = json.loads(text)
        lists = {name: tuple(document[name]) for name in ("arms", "weights", "assumptions", "notes")}
        matrices = {name: tuple(map(tuple, document[name])) for name in ("sampling", "privacy")}
        return cls(
            **document
            | lists
            | matrices
            | {
                "schema": Schema.from_dict(document["schema"]),
                "basis": basis_of(document["basis"]),
                "guarantee": Guarantee(**document["guarantee"]),
                "receipts": tuple(Receipt(**receipt) for receipt in document["receipts"]),
            }
        )


class CurveEstimator(Protocol):
    """Anything that makes an effect curve out of a source."""

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """The curve, for epsilon and delta in all."""
        ...


def matrix(array: Array) -> Matrix:
    """A square array as it is stored, symmetric to the last bit."""
    return tuple(tuple(float(each) for each in line) for line in (array + array.T) / 2)


def _root(stored: Matrix) -> Array:
    """A root of a covariance."""
    values, vectors = np.linalg.eigh(np.array(stored))
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _examples(column: Column) -> tuple[Value, ...]:
    """A few values of a covariate: bounds and quarters of a range, or the first that are listed."""
    if not isinstance(column, Real):
        return tuple(column.values[:6])
    return tuple(column.low + (column.high - column.low) * share for share in (0.0, 0.25, 0.5, 0.75, 1.0))


def named(profile: Mapping[str, Value]) -> str:
    """A profile in words."""
    return ", ".join(f"{key} = {_shown(value)}" for key, value in profile.items())


def _shown(value: Value) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:g}"
