"""Results as a tidy frame, one line for each effect, group or site, to filter, join and plot with other tools."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dpcausal.diagnostics import TableOne
from dpcausal.errors import MissingExtraError, QueryError
from dpcausal.experiment import Scorecard
from dpcausal.queries.profiles import codes_of, values_of
from dpcausal.results.curve import EffectCurve, named
from dpcausal.results.effect import Effect
from dpcausal.results.propensity_score import PropensityScore
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.interval import check_level
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.other_names import called_as

_TEXT, _NUMBER = pa.string(), pa.float64()
_ERRORS = ("std_error", "sampling_sd", "between_sd", "privacy_sd")
_USUAL = pa.schema(
    {
        "term": _TEXT,
        **dict.fromkeys(("estimate", "std_error", "conf_low", "conf_high", "p_value"), _NUMBER),
        "n": pa.int64(),
        **dict.fromkeys(("estimator", "estimand"), _TEXT),
        "epsilon": _NUMBER,
    }
)
_FURTHER = pa.schema(
    {
        **dict.fromkeys(("control", "treated", "outcome", "group", "site"), _TEXT),
        **dict.fromkeys((*_ERRORS[1:], "level", "weight", "delta"), _NUMBER),
        **dict.fromkeys(("protects", "status", "no_interval", "warnings", "method", "as_of"), _TEXT),
    }
)

_SCORECARD = pa.schema(
    {
        **dict.fromkeys(("metric", "kind", "control", "treated"), _TEXT),
        **dict.fromkeys(("control_mean", "treated_mean", "difference", "low", "high"), _NUMBER),
        **dict.fromkeys(("lift", "lift_low", "lift_high", "p_value", "adjusted_p_value", "detectable"), _NUMBER),
        **dict.fromkeys(("sampling_sd", "privacy_sd"), _NUMBER),
        **dict.fromkeys(("verdict", "no_interval", "unit", "description", "owner", "segment"), _TEXT),
    }
)

Result = Effect | EffectCurve | PropensityScore | SiteShare | TableOne


@called_as("tidy(effect)")
def tidy(
    results: Result | Scorecard | Iterable[Result],
    *,
    at: object = None,
    level: float = 0.95,
    full: bool = False,
    backend: Literal["pandas", "polars", "pyarrow"] = "pandas",
) -> Any:  # noqa: ANN401 (a frame of the library that was asked for)
    """Return a frame with one line for each effect, profile of a curve, coefficient of a propensity score, and site.

    The columns are `term`, `estimate`, `std_error`, `conf_low`, `conf_high`, `p_value`, `n`, `estimator`, `estimand`
    and `epsilon`. Unknown and refused values are absent (`NA`, `null`): a refused interval has no bounds, a rehearsal
    has no estimate. Epsilon is that of the whole result to which a line belongs: it does not add up over lines.

    Args:
        results: An effect, a curve, a propensity score, a site's share (`effect.sites`), a Table 1
            (`balance.table_one`), or several of them. An effect with further contrasts has a line for each of them. Or
            a `Scorecard`: its frame has the columns of `ScorecardLine`.
        at: Public profiles at which curves are evaluated; by default those that printing a curve shows.
        full: Whether to add what is compared, the parts of the standard error, the price and the reasons: `no_interval`
            says why an interval is absent, and `status` is `estimated`, `rehearsed`, or the status of a site.
        level: The confidence level of the intervals; those of one curve, and of an effect's further contrasts,
            hold simultaneously.
        backend: The library of the frame.

    Example:
        >>> from dpcausal import DifferenceInMeans, Real, Rehearsal, Schema, Treatment
        >>> rehearsal = Rehearsal(Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100)), n=5_000)
        >>> lines = tidy([DifferenceInMeans().estimate(rehearsal, epsilon=each) for each in (0.1, 1.0)])
        >>> lines[["term", "std_error", "epsilon"]].round(2)
                                  term  std_error  epsilon
        0  treat=1 vs treat=0 on score       1.45      0.1
        1  treat=1 vs treat=0 on score       0.83      1.0
    """
    check_level(level)
    if isinstance(results, Scorecard):
        card = results.to_dict()
        return _frame(pa.Table.from_pylist([*card["comparisons"], *card["segments"]], schema=_SCORECARD), backend)
    several: Iterable[Result] = results if isinstance(results, Iterable) else [results]
    lines = [{"term": _term(line)} | line for each in several for line in _lines(each, at, level)]
    columns = pa.schema([*_USUAL, *_FURTHER]) if full else _USUAL
    return _frame(pa.Table.from_pylist(lines, schema=columns), backend)


def _term(line: Mapping[str, object]) -> object:
    """Return what a line is about, in a few words."""
    compared = f"{line.get('treated')} vs {line.get('control')} on {line.get('outcome')}"
    return line.get("group") or line.get("site") or compared


def _lines(result: Result, at: object, level: float) -> Iterator[dict[str, object]]:
    if isinstance(result, SiteShare):
        yield {name: getattr(result, name) for name in ("site", "status", "n", "estimate", "weight")} | {
            "std_error": result.standard_error
        }
    elif isinstance(result, Effect | EffectCurve):
        lines = _of_effect(result, level) if isinstance(result, Effect) else _of_profiles(result, at, level)
        for line in lines:
            absent = dict.fromkeys(("estimate", "conf_low", "conf_high", "p_value") if result.rehearsed else ())
            yield _of_both(result, level) | line | absent
    elif isinstance(result, PropensityScore):
        for name, value in result.coefficients.items():
            yield _of_score(result) | {"group": name, "estimate": None if result.rehearsed else value}
    elif isinstance(result, TableOne):
        yield from _of_table(result)
    else:
        raise QueryError(
            expected="effects, curves, propensity scores, shares of sites or tables of characteristics",
            got=type(result).__name__,
            hint="pass the result of an estimator, or a list of results.",
        )


def _of_both(result: Effect | EffectCurve, level: float) -> dict[str, object]:
    return _of_all(result) | {
        "estimand": result.estimand,
        "outcome": result.outcome,
        "estimator": result.estimator.get("name"),
        "level": None if result.no_interval else level,
        "no_interval": result.no_interval or None,
    }


def _of_score(score: PropensityScore) -> dict[str, object]:
    return _of_all(score) | {
        "estimand": "coefficient of the log-odds of treatment",
        "outcome": score.schema.treatment.name,
        "no_interval": "the error of a private score is not estimated",
    }


def _of_all(result: Effect | EffectCurve | PropensityScore) -> dict[str, object]:
    control, treated = result.arms
    guarantee = result.guarantee
    return {
        "control": control,
        "treated": treated,
        "n": result.n,
        "method": result.method,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "protects": guarantee.protects,
        "status": "rehearsed" if result.rehearsed else "estimated",
        "as_of": result.as_of,
    }


def _of_effect(effect: Effect, level: float) -> Iterator[dict[str, object]]:
    numbers: dict[str, object] = {name: getattr(effect, name) for name in ("estimate", *_ERRORS[1:])}
    numbers |= {"std_error": effect.standard_error}
    if effect.p_values_hold or not effect.no_interval:
        numbers |= {"p_value": effect.p_value()}
    numbers |= {"warnings": " ".join(effect.warnings) or None}
    bounds = {} if effect.no_interval else dict(zip(("conf_low", "conf_high"), effect.interval(level), strict=True))
    yield numbers | bounds
    if effect.contrasts is not None:
        yield from _of_contrasts(effect, effect.contrasts, level)


def _of_contrasts(effect: Effect, contrasts: JointEstimate, level: float) -> Iterator[dict[str, object]]:
    intervals = contrasts.intervals(level)
    for place, (name, value) in enumerate(zip(contrasts.names, contrasts.values, strict=True)):
        along = [float(place == other) for other in range(len(contrasts.names))]
        sampling, error = contrasts.sampling_sd(along), contrasts.standard_error(along)
        line = {"group": name, "estimate": value, "estimand": f"{name}; intervals of all contrasts hold together"}
        line |= {"sampling_sd": sampling, "privacy_sd": max(error**2 - sampling**2, 0.0) ** 0.5}
        known = {} if effect.no_interval else dict(zip(("conf_low", "conf_high"), intervals[place], strict=True))
        yield line | ({} if effect.no_interval else {"std_error": error}) | known


def _of_table(table: TableOne) -> Iterator[dict[str, object]]:
    """Yield one line for each number of a Table 1; bounds are those of its noise bar."""
    control, treated = table.arms
    for name, arm, what, reading in table.statistics:
        seen = {"estimate": reading.value} if reading else {}
        seen |= {"conf_low": reading.value - reading.bar, "conf_high": reading.value + reading.bar} if reading else {}
        absent = "noise hides it" if reading is None else None
        yield {
            "control": control,
            "treated": treated,
            "group": f"{name}, {arm}",
            "estimand": what,
            "level": 0.95,
            "no_interval": absent,
            "status": "rehearsed" if table.rehearsed else "estimated",
        } | ({} if table.rehearsed else seen)


def _of_profiles(curve: EffectCurve, at: object, level: float) -> Iterator[dict[str, object]]:
    names, profiles = curve.examples() if at is None else (_names(curve, at), at)
    sampling, privacy = curve.standard_errors(profiles)
    values = {"estimate": curve.effect(profiles)}
    if not curve.no_interval:
        low, high = curve.effect_interval(profiles, alpha=1 - level, simultaneous=True)
        values |= {"std_error": np.hypot(sampling, privacy), "sampling_sd": sampling}
        values |= {"conf_low": low, "conf_high": high}
    if privacy.any():  # 0 where its scale is private
        values["privacy_sd"] = privacy
    for place, name in enumerate(names):
        yield {"group": name} | {column: float(numbers[place]) for column, numbers in values.items()}


def _names(curve: EffectCurve, at: object) -> list[str]:
    columns = curve.basis.reads(curve.schema)
    profiles = values_of(codes_of(at, columns), columns)
    return [named(dict(zip((column.name for column in columns), profile, strict=True))) for profile in profiles]


def _frame(table: pa.Table, backend: str) -> Any:  # noqa: ANN401
    try:
        return _made(table, backend)
    except ImportError:
        raise MissingExtraError(
            problem=f"The library {backend}, for a frame of its own, is not installed",
            hint=f'pip install {backend}, or write backend="pyarrow", which is always installed.',
        ) from None


def _made(table: pa.Table, backend: str) -> Any:  # noqa: ANN401
    if backend == "pandas":
        import pandas as pd  # noqa: PLC0415 (only if asked for, like those below)

        # Nullable types: NaN would suggest that a number was computed.
        kinds = {_NUMBER: pd.Float64Dtype(), pa.int64(): pd.Int64Dtype(), _TEXT: pd.StringDtype()}
        return table.to_pandas(types_mapper=kinds.get)
    if backend == "polars":
        import polars as pl  # noqa: PLC0415

        return pl.from_arrow(table)
    if backend == "pyarrow":
        return table
    raise QueryError(
        problem=f'backend must be "pandas", "polars" or "pyarrow", not {backend!r}',
        hint="any other library can read a pyarrow table.",
    )
