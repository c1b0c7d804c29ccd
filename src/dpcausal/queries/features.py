"""Features that covariates become, and propensity scores that are linear in them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeGuard

from dpcausal.errors import QueryError
from dpcausal.queries.query import value_names
from dpcausal.schema.columns import Binary, Column, Indicator, indicator_of
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.utils.validation import did_you_mean, is_number

Estimand = Literal["ATE", "ATT", "ATC", "ATO"]

COEFFICIENT_TICK = 2.0**-30

MOST_FEATURES = 200
"""Beyond so many features all products together would fill the memory."""


def feature_names(covariates: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """Return the features of covariates: a constant, each number, one of two values, each of more values."""
    names = ["intercept"]
    for column in covariates_named(covariates, schema):
        names += [column.name] if isinstance(column, Real) or len(column.values) == 2 else value_names(column)
    return tuple(names)


def summed_features(covariates: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """Return the features of covariates, without the constant, for sums of each."""
    return _checked(feature_names(covariates, schema)[1:])


def is_measured(column: Column) -> TypeGuard[Real | Binary]:
    """Return whether a column holds one of two values, or a number in its own unit: not one that is a score."""
    return isinstance(column, Binary) or (isinstance(column, Real) and column.scale is None)


def numbers_among(covariates: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """Return those covariates that are numbers, whose squares have a deficit."""
    return tuple(column.name for column in covariates_named(covariates, schema) if isinstance(column, Real))


def design_names(covariates: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """Return the features of a linear regression: without a constant and without the first of several values."""
    names: list[str] = []
    for column in covariates_named(covariates, schema):
        names += [column.name] if isinstance(column, Real) or len(column.values) == 2 else value_names(column)[1:]
    return _checked(tuple(names))


def titles_of(names: Sequence[str], schema: Schema) -> list[str]:
    """Return what tables and figures call features: the titles of their columns, and the value that each stands for."""
    titles = dict(zip(names, names, strict=True))
    for column in schema.covariates:
        labels = (column.name, *(() if isinstance(column, Real) else value_names(column)))
        titles |= {name: column.title + name.removeprefix(column.name) for name in labels if name in titles}
    return list(titles.values())


def _checked(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) > MOST_FEATURES or len(set(names)) < len(names):
        raise QueryError(
            expected=f"covariates that make at most {MOST_FEATURES} features, each with a name of its own",
            got=f"{len(names):,}: {', '.join(names)[:200]}",
            hint="use fewer covariates, or fewer values for them: noise grows with their number. No covariate may be "
            "called like a value of a category (ward=a).",
        )
    return names


def name_tuple(covariates: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a list, or in a text such as `age + sex`.

    Example:
        >>> name_tuple("age + sex"), name_tuple("~ age"), name_tuple(["age", "sex"])
        (('age', 'sex'), ('age',), ('age', 'sex'))
    """
    if isinstance(covariates, str):
        return tuple(name.strip() for name in covariates.strip().removeprefix("~").split("+"))
    if not isinstance(covariates, Iterable) or not all(isinstance(name, str) for name in covariates):
        raise QueryError(
            expected="names of covariates",
            got=repr(covariates)[:100],
            hint='write them in a list, ["age", "sex"], or in a text, "age + sex".',
        )
    return tuple(covariates)


def covariates_named(covariates: Sequence[str], schema: Schema) -> tuple[Column, ...]:
    """Return the covariates of these names."""
    known = {column.name: column for column in schema.covariates}
    texts = all(isinstance(name, str) for name in covariates)
    if not (covariates and texts and len(set(covariates)) == len(covariates) and set(covariates) <= set(known)):
        unknown = [name for name in covariates if name not in known] if texts else []
        twice = [name for name in covariates if list(covariates).count(name) > 1]
        problem = (
            f"{unknown[0]!r} is not a covariate of the schema, which has {', '.join(known) or 'none'}"
            if unknown
            else f"The covariate {twice[0]!r} is named twice"
            if twice
            else f"No covariate is named; the schema has {', '.join(known) or 'none'}"
            if texts
            else f"Covariates must be named by their names, as in the schema: {', '.join(known) or 'none'}"
        )
        raise QueryError(
            problem=problem,
            hint=f"{_hint(unknown[0], known) if unknown else ''}name covariates of the schema in a list or in a text "
            'such as "age + sex", without treatment and outcome; declare there every covariate used, with bounds or '
            "values.",
        )
    return tuple(known[name] for name in covariates)


def _hint(name: str, known: Mapping[str, Column]) -> str:
    """Return which covariate an unknown name may mean, or what declares it."""
    for column in known.values():
        if indicator_of(column).name == name:
            return f"declare {column.name!r} with indicator=True, in a study file indicator = true. Else "
    return did_you_mean(name, known)


def with_indicators(schema: Schema, names: Collection[str]) -> Schema:
    """Return a schema with an indicator for each of these covariates that can be missing: no total over records.

    Example:
        >>> from dpcausal import Binary, Treatment
        >>> schema = Schema(treatment=Treatment("arm"), outcome=Binary("died"), covariates=[Real("age", 20, 60)])
        >>> [column.name for column in with_indicators(schema, ["age"]).covariates]
        ['age', 'age is missing']
    """
    never = schema.unit.added if schema.unit else ()
    found = {
        column.name: replace(column, indicator=True)
        for column in schema.covariates
        if not (isinstance(column, Indicator) or column.indicator) and column.name in names and column.name not in never
    }
    return replace(schema, covariates=[found.get(each.name, each) for each in schema.covariates]) if found else schema


def score_columns(covariates: Sequence[str], schema: Schema) -> tuple[TableColumn, ...]:
    """Return the columns that a score depends on."""
    return schema.treatment, *covariates_named(covariates, schema)


def clipped_coefficients(coefficients: Sequence[float]) -> tuple[float, ...]:
    """Return coefficients clipped to a million, far beyond any that are not mostly noise."""
    if not all(map(is_number, coefficients)):
        raise QueryError(
            expected="numbers as coefficients",
            got=repr(coefficients),
            hint="take them from a logistic query's release.",
        )
    return tuple(min(max(float(each), -(2.0**20)), 2.0**20) for each in coefficients)


def check_coefficients(coefficients: Sequence[float], covariates: Sequence[str], schema: Schema) -> None:
    """Raise unless there is a coefficient for each feature."""
    names = feature_names(covariates, schema)
    if len(coefficients) != len(names):
        raise QueryError(
            expected=f"{len(names)} coefficients, one for each feature",
            got=f"{len(coefficients)}",
            hint="take them from the release of a logistic query of the same covariates.",
        )


def check_clip(clip: object) -> None:
    """Raise unless scores can be clipped to this, and to 1 less this."""
    if not (is_number(clip) and 1e-3 <= clip < 0.5):  # type: ignore[operator]
        raise QueryError(
            expected="a clip from 0.001 to below 0.5",
            got=repr(clip),
            hint="a clip of 0.1 is usual; a smaller one needs more noise.",
        )


def check_estimand(estimand: object, known: Sequence[str]) -> None:
    """Raise unless an estimand is one of those known."""
    if estimand not in known:
        raise QueryError(
            expected=f"one of the estimands {', '.join(known)}",
            got=repr(estimand),
            hint="they are written in capitals; ATO is the one with the least noise.",
        )


def largest_weight(estimand: Estimand, clip: float) -> float:
    """Return the largest weight of scores clipped to clip and 1 - clip."""
    return {"ATE": 1 / clip, "ATO": 1.0}.get(estimand, (1 - clip) / clip)


def arm_weights(estimand: Estimand, score: float, clip: float) -> tuple[float, float]:
    """Return the weights of a control and of a treated unit with this propensity score."""
    score = min(max(score, clip), 1 - clip)
    return {
        "ATE": (1 / (1 - score), 1 / score),
        "ATT": (score / (1 - score), 1.0),
        "ATC": (1.0, (1 - score) / score),
        "ATO": (score, 1 - score),
    }[estimand]


def single_feature(schema: Schema) -> Sequence[tuple[str, ...]]:
    """Return, for examples, a list with the name of a covariate that becomes one feature; none where there is none."""
    numbers = [column.name for column in schema.covariates if isinstance(column, Real)]
    pairs = [column.name for column in schema.covariates if not isinstance(column, Real) and len(column.values) == 2]
    return [(name,) for name in (*numbers, *pairs)][:1]


def one_and_all(schema: Schema) -> Sequence[tuple[str, ...]]:
    """Return, for examples, a covariate that becomes one feature, and all covariates."""
    every = tuple(column.name for column in schema.covariates)
    return [names for names in dict.fromkeys((*single_feature(schema), every)) if names]
