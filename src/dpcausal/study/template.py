"""Templates of study files, from column names and types; and the check that one is filled in."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from dpcausal.schema.codebook import CodebookColumn
from dpcausal.utils.blanks import BLANK, quoted

VERSION = 2
"""The version of the format of study files."""

_BLANK = f'"{BLANK}"'

_STUDY = """\
# A study: everything that is asked of a table, fixed before anything is read.
# This template uses the names and types of the table's columns only, and nothing you fill in may come from the data
# either: take bounds and values from a codebook, a protocol or the literature.
# Replace every "<fill in>", quotation marks included. Then see its cost and its expected precision:
#   dpcausal plan study.toml --n NUMBER_OF_PEOPLE

version = 2                 # of the format of this file
name = "<fill in>"          # for instance training-2026
question = "<fill in>"      # in words: does the drug lower blood pressure after a year?

# "trial" if treatment was randomised, otherwise "observational".
design = "<fill in>"
eligibility = "<fill in>"   # who is in the table
time_zero = "<fill in>"     # when follow-up begins

# The privacy loss of all queries of the estimator. About 1 is a usual choice.
epsilon = "<fill in>"
delta = 0.0                 # 0 is the stronger guarantee; otherwise far below 1 / number of people

# Who chose the bounds and values below, when, and where they come from. None may come from this table.
[bounds]
by = "<fill in>"
on = "<fill in>"            # for instance "2026-03-01"
source = "<fill in>"        # for instance "codebook, version 4"

# Expectations from the literature or a pilot, never from the table itself. Plans use them, also for the probability
# that noise leaves no interval. Uncomment what you know.
# [expected]
# outcome_mean = "<fill in>"   # of a binary outcome, the risk
# outcome_sd = "<fill in>"     # within an arm
# treated_share = "<fill in>"  # of the units compared, for instance 0.3
# compared_share = "<fill in>" # where there are other arms, or outcomes are missing: the share of all units compared
# confounding = "<fill in>"    # difference between arms without any effect, in standard deviations; 0.2 is small
# overlap = "<fill in>"        # what the arms' propensity scores have in common: 1 in a trial, 0.5 is poor

# For a trial: difference_in_means. With confounders: for instance regression_adjustment or doubly_robust, and below it
# a line covariates = ["age", "sex"] with their names; or stratification, with by = ["sex"]. `dpcausal plan` ranks them.
[estimator]
name = "<fill in>"

# Diagnostics that must not fail before the effect is asked for, each with an epsilon of its own on top of the one
# above: covariate balance, and overlap of the arms. Uncomment what you want.
# [requires.overlap]
# epsilon = "<fill in>"     # for instance 0.2
# covariates = "<fill in>"  # confounders from the end of this file: ["age", "sex"]
# [requires.balance]
# epsilon = "<fill in>"
# covariates = "<fill in>"

# Privacy unit: what may differ between neighbouring tables. "record" is one whole record, the strongest guarantee;
# "record_within_arm" all but the arm, for a trial whose assignment was published; "outcome" the outcome only.
[schema]
protects = "record"
# entry = "week"            # for looks at a growing table that are paid for once: when a person entered, for good

# Declare every arm that the table holds. Units in other arms are outside the comparison: they count in neither arm.
[schema.treatment]
name = "<fill in>"          # a column from the end of this file
arms = "<fill in>"          # every arm in the table, reference first: [0, 1] or ["placebo", "low", "high"]
labels = "<fill in>"        # what results call them: ["placebo", "drug"]; without this line they say arm=drug
# aliases = { drug = ["d"] }  # other spellings of an arm; capitals and blanks around it do not matter
# compare = "high"          # where there are more than two arms: the one compared with the reference
# undeclared = 0            # the arm to which any other value counts; left out, such units are outside the comparison

# A number: kind "real". Values beyond low and high are clipped; the wider the bounds, the more noise.
# Yes or no: kind "binary", and instead of low and high a line values = ["no", "yes"].
# How its cells are written, if not as in 1234.5, 1,234.5 or 1,5: strip = ["mg"]; percent = true; and decimal = "," if
# 1,234 is a little more than 1. Numbers that stand for a missing value: missing_codes = [-9, 999]. Dates are days since
# a day 0, since = "2020-01-31", as text with date_format = "%d.%m.%Y".
# In place of its name, sentences and axes can say label = "costs of the stay", unit = "euros".
[schema.outcome]
name = "<fill in>"          # a column from the end of this file
kind = "<fill in>"
low = "<fill in>"
high = "<fill in>"
# missing = 0               # as what a missing outcome counts; left out, units without one are outside the comparison

# If people have several records: whose a record is (name), and which one counts (by, keep). Otherwise leave this out.
# [schema.unit]
# name = "<fill in>"
# by = "<fill in>"
# keep = "first"
# date_format = "%d.%m.%Y"  # if by holds dates as text that are not written year first
# sum = ["<fill in>"]       # columns to add up over a person's records instead; low and high bound the total

# A number enters models on a scale of its own. For that, give two values between which about 90 % of units are, from
# the literature: typical = [0.5, 1.5]; and transform = "log" if it varies by ratios, as a laboratory value does, or
# "linear". Without typical a part of epsilon is spent to find the scale.
# The columns of the table. Uncomment those that are confounders: known before treatment, and related to both treatment
# and outcome. Give the reasons in a table of their own: [confounders], with age = "..." below it.
"""

_REAL = f'kind = "real"\nlow = {_BLANK}\nhigh = {_BLANK}'
_UNTYPED = f"""kind = {_BLANK}        # "real" with low and high (dates: and since), "binary" or "category" with values
# low = {_BLANK}
# high = {_BLANK}
# values = {_BLANK}"""
_DAYS = f"""kind = "real"
since = {_BLANK}       # the day 0: "2020-01-31"; low and high are days from there
low = {_BLANK}
high = {_BLANK}"""
_CATEGORY = f'kind = "category"\nvalues = {_BLANK}'

_LINES: dict[str | None, tuple[str, str]] = {
    None: ("a .csv file has no types: declare the kind, and uncomment what it needs", _UNTYPED),
    "integer": ('whole numbers; if they are codes write kind = "category" and values = [...] instead', _REAL),
    **dict.fromkeys(("number", "wide number"), ("numbers", _REAL)),
    "text": ("text", _CATEGORY),
    "boolean": ("true or false", 'kind = "binary"\nvalues = [false, true]'),
    "date": ("dates; for [schema.unit], or as days since a day 0", _DAYS),
}
"""For each family of types, its name and how to declare a covariate of it."""


def study_to_fill_in(
    columns: Mapping[str, str | None], codebook: Mapping[str, CodebookColumn] = MappingProxyType({})
) -> str:
    """Return the text of a study file with blanks, for a table with these columns.

    Args:
        columns: The columns' names, each with the family of its type; None where the table does not say.
        codebook: What a codebook says about columns, by name.

    Example:
        >>> print(study_to_fill_in({"age": "number", "seen": "key"}).partition("with age")[2])
         = "..." below it.
        <BLANKLINE>
        # age: numbers
        # [[schema.covariates]]
        # name = "age"
        # kind = "real"
        # low = "<fill in>"
        # high = "<fill in>"
        <BLANKLINE>
        # seen: can only identify or order records, for [schema.unit]
        <BLANKLINE>
    """
    parts = (_column(name, family, codebook.get(name)) for name, family in columns.items())
    return _STUDY + "".join(f"\n{part}\n" for part in parts)


def _column(name: str, family: str | None, known: CodebookColumn | None) -> str:
    if family not in _LINES:
        use = (
            "can only identify or order records, for [schema.unit]"
            if family == "key"
            else "of a type that cannot be used"
        )
        return f"# {quoted(name)[1:-1]}: {use}"
    words, lines = _LINES[family] if known is None else _declared(known, family)
    block = f"[[schema.covariates]]\nname = {quoted(name)}\n{lines}"
    return "\n".join([f"# {quoted(name)[1:-1]}: {words}", *(f"# {line}" for line in block.splitlines())])


def _declared(known: CodebookColumn, family: str | None) -> tuple[str, str]:
    """Return the words and the declaration of a covariate as a codebook has it, with blanks where it is silent."""
    words = f"{known.label or 'no label'} (codebook)"
    if known.kind in {"binary", "category"}:
        values = ", ".join(_value(each, family) for each in known.values)
        return words, f'kind = "{known.kind}"\nvalues = {f"[{values}]" if values else _BLANK}'
    if known.kind == "date":
        return words, _DAYS
    if known.kind == "real":
        return words, f'kind = "real"\nlow = {_bound(known.low)}\nhigh = {_bound(known.high)}'
    return words, _LINES[family][1]


def _bound(text: str) -> str:
    """Return a bound as TOML writes it; a blank where the codebook has no number."""
    return text if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text) else _BLANK


def _value(text: str, family: str | None) -> str:
    """Return a listed value as the table holds it: a whole number, or a text where the column is text or a csv's."""
    return text if family == "integer" and re.fullmatch(r"-?(0|[1-9]\d*)", text) else quoted(text)
