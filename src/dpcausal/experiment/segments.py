"""What the segments of an experiment must be."""

from collections.abc import Sequence

from dpcausal.errors import StudyError
from dpcausal.experiment.metric import Metric
from dpcausal.schema.columns import Binary, Category
from dpcausal.utils.validation import is_number

SEGMENT_SHARE = 0.2
"""The share of the budget for segments. Noise of all units grows by an eighth, Laplace noise by a quarter."""


def check_segments(segments: object, share: float, metrics: Sequence[Metric]) -> tuple[Binary | Category, ...]:
    """Return the columns of segments, which have listed values and say what a missing value counts as."""
    columns = tuple(segments) if isinstance(segments, list | tuple) else (None,)
    if not all(isinstance(each, Binary | Category) for each in columns):
        raise StudyError(
            problem=f"Segments must be columns with listed values, not {segments!r}"[:300],
            hint='write segments=[Category("country", values=["DE", "FR", "other"], missing="other")].',
        )
    if undeclared := [each.name for each in columns if each.missing is None]:
        raise StudyError(
            problem="A column of segments must declare what a missing value counts as; "
            f"{', '.join(undeclared)} does not",
            hint='give it a value of its own: Category("country", values=["DE", "other"], missing="other").',
        )
    centred = [each.label for each in metrics if each.earlier is not None and each.earlier.centre is not None]
    if columns and centred:
        raise StudyError(
            problem=f"{centred[0]} is centred at an earlier mean of all units, which is not that of a segment",
            hint="leave out its earlier=, or segments=.",
        )
    if not columns and share != SEGMENT_SHARE:
        raise StudyError(
            problem="segment_share= is given, and there are no segments", hint="leave it out, or give segments=."
        )
    if not (is_number(share) and 0 < share < 1):
        raise StudyError(
            expected="segment_share= between 0 and 1, the share of the budget that segments have",
            got=repr(share)[:100],
            hint="leave it out for 0.2.",
        )
    return columns
