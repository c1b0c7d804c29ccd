"""An estimator run on no data: what it would ask, what that costs, and how wide its interval would be."""

from dataclasses import dataclass

from dpcausal.calibration import calibrate
from dpcausal.expectations import Expectations
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query
from dpcausal.release import Noisy, PublicValue, Receipt, Release
from dpcausal.text import format_number


@dataclass(frozen=True)
class Rehearsal(Expectations):
    """A source without a table: every release is what would be expected, without noise but with its known size.

    Attributes:
        schema: What is public about the table to be.
        n: The number of units.
        treated_share: The share of the compared units expected in the treated arm.
        outcome_mean: The outcome's expected mean; the middle of its bounds if left out.
        outcome_sd: The outcome's expected standard deviation within an arm; if left out, that of an outcome spread
            evenly over its bounds, or of a yes-or-no outcome with the expected mean.
        confounding: By how much of that standard deviation the arms' mean outcomes are expected to differ for reasons
            other than treatment; social scientists call 0.2 a small difference. With 0.3, which is taken if it is left
            out, two covariates differ between arms by 0.4 standard deviations each, as in many records of care. In a
            trial it is 0.
        covariate_sd: The expected standard deviation of covariates that are numbers, as a share of half their range.
        compared_share: The share of units expected in one of the two compared arms.

    Example:
        >>> from dpcausal import DifferenceInMeans, Real, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("re78", 0, 60_000))
        >>> for n in (445, 5_000):
        ...     plan = DifferenceInMeans().estimate(Rehearsal(schema, n=n, outcome_sd=7_000), epsilon=1.0)
        ...     low, high = plan.interval(0.95)
        ...     print(n, round((high - low) / 2, -2))
        445 2100.0
        5000 400.0
    """

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The expected number of units in each arm where the schema declares arms public; otherwise None."""
        return None if self.schema.protects == "record" else self.expected_sizes

    @property
    def caveats(self) -> tuple[str, ...]:
        """What was assumed."""
        outcome = f"an outcome of mean {format_number(self.mean)} and standard deviation {format_number(self.sd)}"
        outside = "" if self.compared_share == 1 else f" in the comparison, out of {self.n:,}"
        units = f"{self.treated_share:.0%} of {self.compared:,} units{outside}"
        assumed = (f"rehearsed with {units} treated and {outcome}",)
        if not self.schema.covariates:
            return assumed
        spread = f"numbers among them have a standard deviation of {self.covariate_sd:.2g} half ranges"
        moved = f"the confounding they are about moves the difference by {self.confounding:g} standard deviations"
        return (
            *assumed,
            f"where covariates are used they explain a quarter of the outcome's variance; {spread}; {moved}",
        )

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """What the query would be expected to give, with the noise it would have and the price it would cost."""
        noise = calibrate(query, self.schema, guarantee)
        receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta)
        values = query.expected(self, guarantee)
        ticks = tuple(round(values[at.name] / at.tick) for at in noise.sensitivity.coordinates)
        public = [PublicValue(name, values[name], because="expected, not read") for name in query.public_values]
        return Release.of(query, guarantee, noise, noisy=Noisy(ticks), public_values=public, receipt=receipt)
