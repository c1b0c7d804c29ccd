"""Rehearsals: estimators run without data, to see what they ask, what that costs, and how wide intervals will be."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from dpcausal.guarantee import Guarantee, Rule
from dpcausal.queries import Query, seen_by
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Noisy, PublicValue, Receipt, Release
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH, Scale
from dpcausal.utils.text import format_number, html_table, table_rows


@dataclass(frozen=True)
class Rehearsal(Expectations):
    """A source without a table. Its releases are the expected answers: without noise, but stating its size.

    Attributes:
        schema: What is public about the table to be.
        treated_share: The expected share of treated units among those compared.
        outcome_mean: The outcome's expected mean; by default the middle of its bounds.
        outcome_sd: The outcome's expected standard deviation within an arm; by default that of a uniform distribution
            over its bounds, or of a binary outcome with the expected mean.
        confounding: The expected difference between the arms' mean outcomes without any effect, in standard deviations
            of the outcome; 0.2 is small in the social sciences. With the default of 0.3, two covariates differ between
            arms by 0.4 standard deviations each, as in many health records. In a trial it is 0.
        covariate_sd: The expected standard deviation of numeric covariates, as a share of half their range.
        compared_share: The expected share of units in the comparison: in one of the two compared arms, and with an
            outcome. By default all arms are of one size, and no outcome is missing. Where all arms are compared, the
            others lack an outcome.
        overlap: The expected overlap of the arms: the share that the distributions of propensity scores in the two arms
            have in common. It is 1 in a trial; 0.5 is poor. By default it follows from the confounding, which is then
            due to covariates that differ between arms by twice as much: 0.76 with a confounding of 0.3.
        correlation: The expected correlation of two measurements of a unit: of the outcome before and after, or of the
            two columns of a metric.
        typical: Between which two values about 90 % of units are, by the names of numbers, and the share of units with
            the second value, by the names of columns with two. It is for columns that do not declare it, such as those
            of metrics; otherwise numbers lie around the middle of their bounds, and shares are one half.
        rule: How the budget will add up prices. Under `zcdp` estimators with a delta always use Gaussian noise, which
            costs less there; otherwise they use the smaller noise.
        parts: Of how many parts the noise will be the sum: for a secure sum, how many sites will answer over how many
            sites' shares are the whole noise.
        sites: Over how many sites answers will be summed.

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

    rule: Rule = "additive"
    parts: float = 1
    sites: int = 1

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The expected number of units in each arm where the schema declares arms public; otherwise None."""
        return self.expected_sizes if self.schema.sizes_are_public else None

    @property
    def caveats(self) -> tuple[str, ...]:
        """The expectations, in words."""
        outcome = f"an outcome of mean {format_number(self.mean)} and standard deviation {format_number(self.sd)}"
        outside = "" if self.share_compared == 1 else f" in the comparison, out of {self.n:,}"
        units = f"{self.treated_share:.0%} of {self.compared:,} units{outside}"
        assumed = (f"rehearsed with {units} treated and {outcome}",)
        if not self.schema.covariates:
            return assumed
        spread = f"numeric ones have a standard deviation of {self.covariate_sd:.2g} half ranges"
        if any(isinstance(column, Real) and column.scale for column in self.schema.covariates):
            spread += f", those on a scale one of {1 / REACH:.2g}"
        moved = f"confounding shifts the difference by {self.confounding:g} standard deviations"
        common = "" if self.overlap is None else f"; propensity scores of the arms have {self.overlap:.0%} in common"
        return (
            *assumed,
            f"covariates, where used, explain a quarter of the outcome's variance; {spread}; {moved}{common}",
        )

    def _repr_html_(self) -> str:
        """Return the expectations for a notebook."""
        table = [("units", f"{self.n:,}"), *self.schema.declared_rows, *table_rows("expects", self.caveats)]
        return html_table("Rehearsal: no data read, nothing spent", table)

    def narrowed(self, low: float, high: float) -> Self:
        """Return the same expectations of outcomes with narrower public bounds."""
        mean = min(max(self.mean, low), high)
        return replace(
            self,
            schema=self.schema.narrowed(low, high),
            typical={name: each for name, each in dict(self.typical).items() if name != self.schema.outcome.name},
            outcome_mean=mean,
            outcome_sd=min(self.sd, (high - low) / 2, ((mean - low) * (high - mean)) ** 0.5),
        )

    @property
    def is_scalable(self) -> bool:
        """Whether covariates can be given scales: not where answers will be summed over sites."""
        return self.sites == 1

    def scaled(self, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Self:
        """Return the same expectations of covariates by their scores, whose standard deviation is that of a scale."""
        return replace(self, schema=self.schema.scaled(scales, indicators), covariate_sd=1 / REACH)

    def _seen_by(self, query: Query) -> Self:
        """Return the expectations for a query, whose outcome may be whether an outcome is missing.

        Then nobody is outside for the lack of one. Where all arms are compared, those outside lack an outcome.
        """
        seen = seen_by(query, self.schema)
        if seen.outcome == self.schema.outcome:
            return replace(self, schema=seen)
        missing, share = 0.0, self.compared_share
        if not self.schema.treatment.outside:
            missing, share = 1 - self.share_compared, None
        typical = {name: each for name, each in dict(self.typical).items() if name != self.schema.outcome.name}
        return replace(self, schema=seen, outcome_mean=missing, outcome_sd=None, compared_share=share, typical=typical)

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the expected answer to a query, with the size of its noise and its price.

        What adds up units is answered from a synthetic population by the function that answers it in a vault.
        """
        secure = self.parts != self.sites
        noise = calibrate(query, self.schema, guarantee, "zcdp" if secure else self.rule)
        coordinates = noise.sensitivity.coordinates
        receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta)
        expectations = self._seen_by(query)
        values = query.expected(expectations, guarantee)
        if values is None:
            from dpcausal.rehearsal.population import expected_sums  # noqa: PLC0415 (slow to load)

            values = expected_sums(query, expectations, coordinates, guarantee)
        ticks = tuple([round(values[at.name] / at.tick) for at in coordinates])
        public = [PublicValue(name, values[name], because="expected, not read") for name in query.public_values]
        one = Release.of(query, guarantee, noise, noisy=Noisy(ticks), public_values=public, receipt=receipt)
        return one.of_sites(self.sites, self.parts)
