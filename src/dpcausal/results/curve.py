"""A heterogeneous treatment effect, as a public function of covariates."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import QueryError, RefusedError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Basis, Cells
from dpcausal.queries.basis import basis_of, basis_values
from dpcausal.queries.profiles import Codes, by_covariate, codes_of, examples_of
from dpcausal.release import Receipt, units_of
from dpcausal.results.printed import PrintedResult
from dpcausal.schema.cells import Value
from dpcausal.schema.schema import Schema
from dpcausal.source import Source
from dpcausal.uncertainty.interval import Family, check_alpha, critical_values, simulated, standard_noise
from dpcausal.utils.arrays import Array
from dpcausal.utils.documents import json_of, read_as
from dpcausal.utils.other_names import OtherNames, called_as
from dpcausal.utils.plain_text import check_plain_text, printed_texts
from dpcausal.utils.text import format_number, table_rows
from dpcausal.utils.validation import is_number

Matrix = tuple[tuple[float, ...], ...]

_BATCH = 2**15
_DRAWS = 20_000


@dataclass(frozen=True, kw_only=True)
class EffectCurve(PrintedResult, OtherNames):
    """The estimated effect for any profile of covariates. Public: evaluating it costs nothing, however often.

    The effect of a profile is the sum of weights times public functions of it. It is computed from releases that are
    paid for. Profiles are public too, and must not be taken from a private table.

    Attributes:
        estimand: The estimand, in words.
        arms: The two arms, control first.
        outcome: The outcome's name.
        schema: The public declaration of the table.
        basis: The functions.
        weights: Their weights, noise included.
        sampling: The weights' covariance without privacy noise: sampling error, and the prior variance of effects where
            noise drowns them and the curve is shrunk. 0 where it is unknown; then `no_interval` says why.
        privacy: The covariance of the privacy noise in them; 0 where the scale of the noise is itself private.
        family: The distribution of that noise.
        parts: The least number of independent parts of one size in the noise of each weight.
        n: The number of units, which is public.
        method: The estimator, in words.
        guarantee: The privacy guarantee of all queries behind the curve together.
        assumptions: What must hold for the curve to identify the estimand.
        receipts: The queries and their prices.
        notes: Further notes for the reader.
        no_interval: Why there are no intervals; empty where there are.
        estimator: The estimator that made it and its parameters, by name; empty where that is not known.
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
    parts: float = 1
    estimator: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_plain_text("texts of a curve", printed_texts(self))

    def __repr__(self) -> str:
        return f"<{self._title()}; {self.method}; {self.guarantee}>"

    @classmethod
    def of(cls, source: Source, *, notes: tuple[str, ...] = (), **attributes: Any) -> Self:  # noqa: ANN401
        """Make a curve for a source's schema, with these attributes."""
        schema = source.schema
        return cls(
            arms=schema.treatment.labels_or_values,
            outcome=schema.outcome.title,
            schema=schema,
            n=source.n,
            notes=(*notes, *source.caveats),
            **attributes,
        )

    @called_as("curve.effect(profiles)")
    def effect(self, X: object, *, T0: object = None, T1: object = None) -> Array:  # noqa: N803 (as in EconML)
        """Return the effect at each profile.

        Args:
            X: Public profiles: a dataframe or mapping with a column for each covariate, or a table with a column for
                each covariate of the basis in turn. A number outside its range counts as the nearer bound. A curve of
                effects at given profiles (`at`) answers any other with the nearest of these.
            T0: The control arm as the schema writes it, for compatibility with EconML; no other is known.
            T1: The treated arm in the same way.
        """
        self._check_arms(T0, T1)
        weights = np.array(self.weights)
        return np.concatenate([values @ weights for values in self._values(X)])

    def standard_errors(self, X: object) -> tuple[Array, Array]:  # noqa: N803
        """Return the standard errors of the effect at each profile: see `sampling`, and of privacy noise."""
        errors = [self._errors(values) for values in self._values(X)]
        return np.concatenate([each[0] for each in errors]), np.concatenate([each[1] for each in errors])

    @called_as("curve.effect_interval(profiles, alpha=0.05)")
    def effect_interval(
        self,
        X: object,  # noqa: N803
        *,
        T0: object = None,  # noqa: N803
        T1: object = None,  # noqa: N803
        alpha: float = 0.05,
        simultaneous: bool = False,
    ) -> tuple[Array, Array]:
        """Return bounds of the effect at each profile that account for sampling error and privacy noise.

        Args:
            X: Public profiles.
            T0: As for `effect`.
            T1: As for `effect`.
            alpha: The error probability; 0.05 for 95 % intervals.
            simultaneous: Whether alpha is for all intervals together, and not for each of them.

        Raises:
            RefusedError: Where there is no valid interval; the message says why.
        """
        self._check_interval(alpha)
        effect, errors = self.effect(X, T0=T0, T1=T1), self.standard_errors(X)
        return self._bounds(effect, errors, alpha, self._simultaneous(X, alpha) if simultaneous else None)

    def ate(self, X: object, *, T0: object = None, T1: object = None) -> float:  # noqa: N803
        """Return the mean effect over public profiles; not over the table's units, whose profiles are private."""
        return float(self.effect(X, T0=T0, T1=T1).mean())

    def ate_interval(
        self,
        X: object,  # noqa: N803
        *,
        T0: object = None,  # noqa: N803
        T1: object = None,  # noqa: N803
        alpha: float = 0.05,
    ) -> tuple[float, float]:
        """Return bounds of the mean effect over public profiles."""
        self._check_interval(alpha)
        effects = self.effect(X, T0=T0, T1=T1)
        mean = np.sum([values.sum(axis=0) for values in self._values(X)], axis=0, keepdims=True) / len(effects)
        low, high = self._bounds(effects.mean(keepdims=True), self._errors(mean), alpha)
        return float(low[0]), float(high[0])

    def _errors(self, values: Array) -> tuple[Array, Array]:
        """Return both standard errors for the functions of some profiles."""
        squares = (((values @ np.array(matrix)) * values).sum(axis=1) for matrix in (self.sampling, self.privacy))
        sampling, privacy = (np.sqrt(np.maximum(each, 0.0)) for each in squares)
        return sampling, privacy

    def _bounds(
        self, effect: Array, errors: tuple[Array, Array], alpha: float, times: float | None = None
    ) -> tuple[Array, Array]:
        """Return bounds so many standard errors to either side; by default as many as each effect needs."""
        error = np.hypot(*errors)
        shares = np.divide(errors[1], error, out=np.zeros_like(error), where=error > 0)
        half = error * (critical_values(self.family, shares, 1 - alpha, self.parts) if times is None else times)
        # No effect is larger than the outcome's range.
        low, high = self.schema.outcome_bounds
        lowest, highest = np.minimum(effect, low - high), np.maximum(effect, high - low)
        return np.maximum(effect - half, lowest), np.minimum(effect + half, highest)

    def _check_interval(self, alpha: float) -> None:
        if self.no_interval:
            raise RefusedError(
                problem=f"This curve has no intervals: {self.no_interval}",
                hint="print the curve to see the rest.",
            )
        check_alpha(alpha)

    def _check_arms(self, *given: object) -> None:
        arms = self.schema.treatment.compared
        for name, arm, declared in zip(("T0", "T1"), given, arms, strict=True):
            if arm is not None and not (np.isscalar(arm) and arm == declared):
                raise QueryError(
                    expected=f"{name}={declared!r}, or none: the curve compares {arms[1]!r} with {arms[0]!r}",
                    got=f"{name}={arm!r}",
                    hint="omit T0 and T1; for the opposite contrast change the sign.",
                )

    def predict(self, X: object) -> Array:  # noqa: N803
        """Return the effect at each profile, under scikit-learn's name."""
        return self.effect(X)

    def fit(self, *_: object, **__: object) -> NoReturn:
        """Refuse to fit: scikit-learn fits repeatedly, and learning a curve has its price each time."""
        raise RefusedError(
            expected="a fitted curve",
            got="a request to fit it",
            hint="for a new curve call a learner: learner.estimate(vault, epsilon=…). Where scikit-learn must call "
            "fit, wrap the curve in its FrozenEstimator.",
        )

    def __sklearn_tags__(self) -> object:
        """Tell scikit-learn that this is a regressor and needs no fit."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags  # noqa: PLC0415 (scikit-learn asks)

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=False),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(categorical=True, string=True, allow_nan=True),
            requires_fit=False,
        )

    def ranking(self, X: object) -> NDArray[np.int64]:  # noqa: N803
        """Return the indices of profiles, from the largest effect to the smallest."""
        return np.argsort(-self.effect(X), kind="stable")

    def policy_value(self, X: object, *, cost: float = 0.0) -> float:  # noqa: N803
        """Return the mean gain, net of cost, of treating the profiles whose effect exceeds the cost.

        The noisy effects that select whom to treat also estimate the gain, so it is too large on average.
        """
        if not is_number(cost):
            raise QueryError(expected="a number as cost", got=repr(cost), hint="give it in the outcome's units.")
        return float(np.maximum(self.effect(X) - cost, 0.0).mean())

    def _values(self, profiles: object) -> Iterator[Array]:
        """Yield the functions of profiles, in batches."""
        codes = codes_of(profiles, self.basis.reads(self.schema))
        size = len(next(iter(codes.values())))
        if size == 0:
            raise QueryError(expected="one or more profiles", got="none", hint="give at least one.")
        for start in range(0, size, _BATCH):
            part: Codes = {name: line[start : start + _BATCH] for name, line in codes.items()}
            yield basis_values(self.basis, part, self.schema)

    def _simultaneous(self, profiles: object, alpha: float) -> float:
        """Return the quantile of the largest standardised error over all profiles."""
        normal = simulated("gaussian", [1.0] * len(self.weights), 2 * _DRAWS)[:_DRAWS]
        noise = standard_noise(self.family, self.parts, len(self.weights), _DRAWS)
        drawn = normal @ _root(self.sampling).T + noise @ _root(self.privacy).T
        worst = np.zeros(_DRAWS)
        total = np.array(self.sampling) + np.array(self.privacy)
        for values in self._values(profiles):
            for some in np.array_split(values, max(len(values) // 256, 1)):
                error = np.sqrt(np.maximum(((some @ total) * some).sum(axis=1), 1e-300))
                worst = np.maximum(worst, np.abs(drawn @ (some / error[:, None]).T).max(axis=1))
        return float(np.quantile(worst, 1 - alpha))

    def examples(self) -> tuple[list[str], dict[str, list[Value]]]:
        """Return a few named public profiles: all groups, or each covariate in turn over its range."""
        columns = self.basis.reads(self.schema)
        if isinstance(self.basis, Cells):
            names, profiles = list(self.basis.names(self.schema)), self.basis.profiles(self.schema)
        else:
            values = [examples_of(column) for column in columns]
            middle = tuple(each[len(each) // 2] for each in values)
            names, profiles = [named(dict(zip([column.name for column in columns], middle, strict=True)))], [middle]
            for place, column in enumerate(columns):
                for value in (each for each in values[place] if each != middle[place]):
                    name = named({column.name: value})
                    names.append(name if len(columns) == 1 else f"the same with {name}")
                    profiles.append((*middle[:place], value, *middle[place + 1 :]))
        return names, by_covariate([column.name for column in columns], profiles)

    def _name(self) -> str:
        by = ", ".join(column.name for column in self.basis.reads(self.schema))
        return f"Effect of {self.arms[1]} against {self.arms[0]} on {self.outcome}, by {by}"

    def _table(self) -> list[tuple[str, str]]:
        table = [*table_rows("WARNING", self.guarantee.warnings), ("estimand", self.estimand), *self._effects()]
        if self.no_interval:
            table.append(("interval", f"none: {self.no_interval}"))
        table += [*units_of(self.n, self.receipts), ("method", self.method), ("privacy", str(self.guarantee))]
        return [*table, *table_rows("assumes", self.assumptions), *self._last_lines()]

    def _effects(self) -> list[tuple[str, str]]:
        """Return the effects of the example profiles, with simultaneous intervals."""
        names, profiles = self.examples()
        errors = self.standard_errors(profiles)
        sampling, privacy = (list(map(format_number, each)) for each in errors)
        lines = []
        intervals = None if self.no_interval else self.effect_interval(profiles, simultaneous=True)
        for place, (name, effect) in enumerate(zip(names, self.effect(profiles), strict=True)):
            if intervals is None:
                noise = f"privacy noise {privacy[place]}" if errors[1][place] else "noise of private scale"
                text = f"{format_number(effect)} ({noise})"
            else:
                low, high = (float(side[place]) for side in intervals)
                parts = f"sampling {sampling[place]}, privacy {privacy[place]}"
                text = f"{format_number(effect)}, {format_number(low)} to {format_number(high)} ({parts})"
                if self.rehearsed:
                    text = f"± {format_number((high - low) / 2)} ({parts})"
            lines.append(f"{name}: {text}")
        if intervals is not None:
            lines.append("95 % intervals are simultaneous over these profiles")
        return table_rows("effects", tuple(lines))

    def to_json(self) -> str:
        """Return the curve as JSON, without loss."""
        document = {part.name: getattr(self, part.name) for part in fields(self)}
        document |= {"schema": self.schema.to_dict(), "basis": asdict(self.basis)}  # type: ignore[call-overload]
        document |= {"guarantee": self.guarantee.to_dict(), "receipts": [asdict(each) for each in self.receipts]}
        return json.dumps(document, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | Path) -> Self:
        """Read a curve that `to_json` wrote, from its text or from the file at a `Path`."""
        document = json_of("a curve", cls, text)
        document |= {"schema": Schema.from_dict(document["schema"]), "basis": basis_of(document["basis"])}
        curve: Self = read_as(cls, document)
        return curve


class CurveEstimator(Protocol):
    """Anything that estimates an effect curve from a source."""

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """Estimate the curve for a total of epsilon and delta."""
        ...


def matrix(array: Array) -> Matrix:
    """Return a square array in the form that a curve stores, exactly symmetric."""
    return tuple(tuple(float(each) for each in line) for line in (array + array.T) / 2)


def _root(stored: Matrix) -> Array:
    """Return a root of a covariance matrix."""
    values, vectors = np.linalg.eigh(np.array(stored))
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def named(profile: Mapping[str, Value]) -> str:
    """Return a profile in words."""
    return ", ".join(f"{key} = {_shown(value)}" for key, value in profile.items())


def _shown(value: Value) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:g}"
