"""Texts that estimators record in an effect, marked for translation: templates, with names in braces for what varies.

An effect keeps the English text, so that its JSON is the same in every language. `Language.recorded` finds the template
that a text was made from, and puts the same values into the translation. A text without a template stays in English;
`tests/page/test_recorded.py` finds such texts.
"""

from dpcausal.utils.text import message

SAMPLING_BELOW_NOISE = message("the sampling error is below the noise floor; the value shown is an upper bound")
"""A note where noise hides how small a sampling error is."""

ESTIMANDS = (
    message("average treatment effect"),
    message("average treatment effect (risk difference)"),
    message("average treatment effect: mean outcome with all treated minus mean outcome with none"),
    message("average treatment effect (risk difference): mean outcome with all treated minus mean outcome with none"),
    message(
        "average treatment effect over all units, with an outcome or without: mean outcome with all treated minus mean "
        "outcome with none"
    ),
    message(
        "average treatment effect (risk difference) over all units, with an outcome or without: mean outcome with all "
        "treated minus mean outcome with none"
    ),
    message("average treatment effect on the treated"),
    message("average treatment effect on the controls"),
    message("average treatment effect in the overlap population, a unit counting as e (1 - e), e its propensity score"),
    message("average treatment effect on the treated: mean change with treatment minus mean change without"),
    message(
        "average treatment effect over persons: mean outcome with all clusters treated minus mean outcome with none"
    ),
    message(
        "average treatment effect over strata with both arms, a stratum counting for less where one arm "
        "outnumbers the other by more than {cap} to 1"
    ),
    message("average treatment effect over units with matches"),
    message("average treatment effect, units in strata without both arms counting as without an effect"),
    message(
        "complier average causal effect: mean effect of {received} on units that receive it if and only if "
        "assigned to it"
    ),
    message(
        "difference in restricted mean survival time: mean {time} without {event}, up to {horizon}, with all "
        "treated minus that with none"
    ),
    message("difference in the interpolated {quantile} of the outcome: with all treated minus with none"),
    message("effect at the cutoff: mean effect of treatment on units with {cutoff}"),
    message(
        "main effect: mean outcome with all treated minus mean outcome with none, averaged over the {levels} "
        "levels of {factor}, which count alike"
    ),
    message("{text}; over the units of the {count} sites with weight"),
    message("{text}; averaged over {count} sites by precision"),
    message("{text}; averaged over a population of sites like these {count}"),
    message("{text}; over the units of {count} sites"),
    message("{text}; over the units of the largest site"),
    message("{text}; at the median of {count} sites"),
    message("{text}; averaged over sites like these {count}, outlying sites counting less"),
    message("mean change of {outcome}"),
    message("mean of {outcome} among compliers"),
    message("mean of {outcome} at the cutoff"),
    message("interpolated {quantile} of {outcome}"),
    message("restricted mean survival time to {horizon}"),
)
METHODS = (
    message("a formula of sums"),
    message("difference in means, noisy arm sizes"),
    message("difference in means, public arm sizes"),
    message(
        "{estimand} by augmented scores with private models of {covariates}, propensities clipped to {low} and {high}"
    ),
    message(
        "{estimand} by inverse weighting with a private score of {covariates} (objective perturbation), "
        "clipped to {low} and {high}"
    ),
    message(
        "{estimand} by inverse weighting with a private score of {covariates} (output perturbation), clipped "
        "to {low} and {high}"
    ),
    message("difference in differences: change from {before}, for each unit"),
    message("difference in differences: {before} and {after}, units seen once"),
    message("difference in means adjusted by regression in each arm on {covariates}"),
    message("difference in means adjusted by regression on {covariates}"),
    message("difference in means of {treated} treated and {control} control clusters by {cluster}"),
    message("difference in means so far, look {look} of {looks} ({cohort}), paid for together"),
    message("{text}; outcomes winsorised at bounds from noisy counts"),
    message("difference in outcomes over difference in {received} between assigned arms (Wald)"),
    message(
        "difference in outcomes over difference in {received} between assigned arms (both adjusted by "
        "regression on {covariates} in each arm)"
    ),
    message(
        "difference in outcomes over difference in {received} between assigned arms (both adjusted by "
        "regression on {covariates}: two-stage least squares)"
    ),
    message("exact matching within strata of {strata}, noise by global sensitivity"),
    message("exact matching within strata of {strata}, noise by smooth sensitivity"),
    message(
        "matching on the propensity score of {covariates}; {neighbours} neighbours, limits {control} and "
        "{treated} (control, treated)"
    ),
    message("mean over {blocks} blocks of the learner {learner} of {covariates}"),
    message("means of {arms} arms from one query"),
    message("means of {arms} arms from one query, in strata"),
    message("means of {arms} arms from one query, adjusted by regression in each arm on {covariates}"),
    message("means of {cells} cells, {arms} arms by {levels} levels of {factor}, from one query"),
    message("quantiles of noisy distribution functions on {bins} public bins"),
    message("{text}, weighted for the {estimand} with a private score of {covariates}, clipped to {low} and {high}"),
    message("regression discontinuity at {cutoff}, linear within {bandwidth} on each side"),
    message("stratification by {strata}; {count} strata, cap {cap}"),
    message("survival from noisy counts in {intervals} intervals, censored units at risk for half of theirs"),
    message("{text}, standardised over strata of {strata}"),
    message("minimum variance over {count} of {all} sites; at each: {text}"),
    message("inverse variance over {count} of {all} sites; at each: {text}"),
    message("random effects over {count} of {all} sites; at each: {text}"),
    message("sample size over {count} of {all} sites; at each: {text}"),
    message("largest over {count} of {all} sites; at each: {text}"),
    message("median over {count} of {all} sites; at each: {text}"),
    message("robust over {count} of {all} sites; at each: {text}"),
)
ASSUMPTIONS = (
    message("the formula is the estimand's, and its variance the estimate's"),
    message("treatment was randomised"),
    message("arms are comparable without adjustment, as in a randomised trial"),
    message("arms are comparable without adjustment, as in a trial"),
    message("arms are comparable within strata, as in a randomised trial"),
    message("arms are comparable without adjustment: matching on noisy scores adjusts for almost nothing"),
    message("one unit's outcome does not depend on another unit's arm"),
    message("one cluster's outcomes do not depend on another cluster's arm"),
    message("no confounders but {covariates}"),
    message("no confounders but {covariates}, and treatment follows a logistic regression on these"),
    message("no confounders but {covariates}, and every unit could have been in either arm"),
    message("within strata of {strata} the arms are comparable: no residual confounding"),
    message("outcomes are linear in these"),
    message("outcomes are linear in these, with one effect for all"),
    message("outcomes are missing at random given the arm and {covariates}"),
    message("outcomes are linear in these in each arm, or treatment follows a logistic regression on them"),
    message("treatment follows a logistic regression on these"),
    message("outcomes and {received} are linear in these"),
    message("outcomes and {received} are linear in these, with one effect of the assignment for all"),
    message("the assignment is as good as random"),
    message("the assignment is as good as random among units with the same {covariates}"),
    message("the assignment changes the outcome through {received} only (exclusion)"),
    message("nobody does the opposite of the assignment (monotonicity)"),
    message("treatment and {factor} were both randomised"),
    message("clusters were randomised, and their arms are as listed"),
    message("parallel trends: without treatment both arms would have changed by as much, on average"),
    message("nobody reacted to the treatment before it began"),
    message("units in one period are not those of another, or their errors are independent"),
    message("all units at or above the cutoff are treated and no others (sharp design)"),
    message("all units below the cutoff are treated and no others (sharp design)"),
    message("units cannot choose their side of {cutoff}"),
    message("mean outcomes without and with treatment have no jump at {cutoff}"),
    message("mean outcomes are linear in {running} on each side, within {bandwidth}"),
    message("the interval does not allow for curvature within the bandwidth"),
    message("cutoff and bandwidth were chosen without looking at the data"),
    message("every unit stays in the cohort ({cohort}) in which it entered"),
    message("outcomes of earlier cohorts are final"),
    message("quantiles are interpolated: outcomes of one bin count as spread evenly over it"),
    message("censoring ({censoring}) is independent of the time to the event, within arms"),
    message("censoring ({censoring}) is independent of the time to the event, within arms and strata"),
    message("censored units are at risk for half of their interval, and {time} at its end counts as beyond"),
    message("for the interval: few propensities are beyond {low} and {high}"),
    message("for the interval: averages of blocks are within {limit} half ranges of the outcome"),
    message("for the interval: the learner is unbiased on {units} units and fails on no block"),
    message("for the interval: cluster means are near normal, or clusters are many"),
    message("for the interval: covariates move the outcome about linearly, and alike in both arms"),
    message(
        "for the interval: outcomes are about linear in the covariates, by which noise in the score is turned"
        " into error"
    ),
    message("for the interval: the outcome has one variance in all strata, and strata are as in the table"),
    message("for the interval: the outcome has one variance, and units with close scores are comparable"),
    message("no unit is at two sites"),
    message("effects do not differ between sites; otherwise precise sites dominate the average"),
    message("sites are a random sample of many sites, with normally distributed effects"),
    message("more than half of the sites are correct, and these have one common effect"),
    message("most sites are correct, and their effects are spread symmetrically around the average"),
)
DATA_HANDLING = (
    message("outside the comparison: units whose arm is missing or not declared"),
    message("outside the comparison: other arms ({arms}) and units whose arm is missing or not declared"),
    message("outside the comparison: {arms}; a missing or undeclared arm counted as {arm}"),
    message("a missing or undeclared arm counted as {arm}"),
    message("units whose arm is missing or not declared count in no arm"),
    message("outside the comparison: units whose outcome is missing or unknown"),
    message("outside the comparison: units whose outcome is missing or no number"),
    message(
        "outside the comparison: units whose outcome is missing or no number; numbers in text were read as in {first} "
        "or {second}"
    ),
    message("outside the comparison: units without {column}"),
    message("a missing or unknown outcome counted as {value}"),
    message("a missing outcome, or one that is no number, counted as {value}"),
    message(
        "a missing outcome, or one that is no number, counted as {value}; numbers in text were read as in {first} or"
        " {second}"
    ),
    message("numbers in text were read as in {first} or {second}"),
    message("outcomes lie within {low} and {high}; values beyond were moved to the bound"),
    message("changes lie within {low} and {high}; changes beyond were moved to the bound"),
    message("totals lie within {low} and {high}; totals beyond were moved to the bound"),
    message("a missing covariate counted as: {values}"),
    message("a covariate that is missing or not declared counted as: {values}"),
    message(
        "no Unit is declared, though a column of the table seems to name persons: each record counts as a person of "
        "its own. Where the table is, run: dpcausal check STUDY --table TABLE"
    ),
    message("one unit's whole record replaced by any other; n is public"),
    message("one unit's covariates and outcome replaced by any others; n and every unit's arm are public"),
    message("one unit's outcome replaced by any other; n, covariates and arms are public"),
)
NOTES = (
    message("estimate: {formula}"),
    message("sampling variance: {formula}"),
    message("definitions: {formula}"),
    message("sums: {formula}"),
    message("sums in cells of {columns}: {formula}"),
    message("the bound on what one unit moves was computed from the sums, and certified"),
    message("{joined} strata with hardly any units in an arm were joined"),
    message(
        "a baseline for comparison: scores are nearly all noise, and arms flipped at random shrink the "
        "estimate towards 0; a private difference in means is usually better; delta is never used"
    ),
    message("a baseline for comparison: where strata are many, stratification needs far less noise"),
    message("a placebo whose interval excludes 0 speaks against parallel trends; one that includes 0 is no proof"),
    message("a positive delta would allow smooth sensitivity, which needs far less noise"),
    message("covariates and arms were used without noise: they are declared public"),
    message("covariates were not used: nothing is adjusted for"),
    message("declared, but not adjusted for: {covariates}"),
    message(
        "covariates, where used, explain a quarter of the outcome's variance; numeric ones have a standard "
        "deviation of {sd} half ranges; confounding shifts the difference by {shift} standard deviations"
    ),
    message(
        "covariates, where used, explain a quarter of the outcome's variance; numeric ones have a standard "
        "deviation of {sd} half ranges, those on a scale one of {scaled}; confounding shifts the difference by "
        "{shift} standard deviations"
    ),
    message("too noisy to find where values are: {covariates} between declared bounds"),
    message(
        "{covariates} declare typical values: units without a value count as the middle of the scale, and are not "
        "counted; if there are many, declare an indicator"
    ),
    message("{size} was subtracted for confounding that stays in strata (noisy)"),
    message(
        "in strata stays about {share} of the confounding that they remove; the interval allows for none, and for more"
    ),
    message("answers are added up over sites, so {covariates} enter models between their declared bounds"),
    message("first stage: F = {f}"),
    message("matches were found for {share} of units"),
    message("noise may hide all units of {arms}"),
    message("nothing in this result checks that trends are parallel"),
    message("outcomes were not winsorised: within the public bounds noise is small, or hides the tail"),
    message("rehearsed with {share} of {n} units treated and an outcome of mean {mean} and standard deviation {sd}"),
    message("averaged over about {units} units, of which about {missing} have no outcome (noisy)"),
    message("rehearsed as if no outcome were missing; where units without one differ, the interval will be wider"),
    message("strata count as about {size} of {units} units (noisy)"),
    message("the scale of the privacy noise is private too: it was estimated, with noise"),
    message("answered"),
    message("its budget is spent"),
)
DIAGNOSES = (
    message("the largest difference before adjustment is {difference}, of {name}; at most {most} may be"),
    message("the largest difference after weighting is {difference}, of {name}; at most {most} may be"),
    message("noise hides {names} before adjustment"),
    message("noise hides {names} after weighting"),
    message(
        "{low} to {high} of units lack overlap (threshold {most}): an arm has less than {clip} of the units in their "
        "bin"
    ),
    message(
        "{low} to {high} of units lack overlap (threshold {most}): an arm has less than {clip} of the units in their "
        "bin of a noisy linear score"
    ),
)
NO_INTERVAL = (
    message("{blocks} blocks are too few to tell their spread; use more units, or more blocks"),
    message("a compared arm is so small that noise may hide all of its units"),
    message("an arm has so few units in a period that noise dominates their number"),
    message("an arm with one cluster does not show how clusters differ"),
    message("an arm's size is below the noise; check that the treatment's declared values are those in the table"),
    message("an arm's weight is below the noise; check that the treatment's declared values are those in the table"),
    message("confounding remains, and noisy arms shrink the estimate towards 0, both by unknown amounts"),
    message(
        "noise hides how many units are on a side of the cutoff, or how far they are spread; use a wider "
        "bandwidth, more units or more epsilon"
    ),
    message(
        "privacy noise hides how {hidden} varies; declare tighter bounds, or first check that values of "
        "{names} are spelled in the table as declared (dpcausal check), because all others count as one "
        "value; then use fewer covariates, more epsilon or more units"
    ),
    message(
        "privacy noise hides how {hidden} varies; declare tighter bounds, or first check that values of "
        "{names} are spelled in the table as declared (dpcausal check), because all others count as one "
        "value; then use more epsilon or more units"
    ),
    message(
        "privacy noise makes it as wide as the range of possible effects; first check that values of {names} "
        "are spelled in the table as declared (dpcausal check), because all others count as one value; then "
        "use fewer covariates, more epsilon or more units"
    ),
    message(
        "privacy noise makes it as wide as the range of possible effects; first check that values of {names} "
        "are spelled in the table as declared (dpcausal check), because all others count as one value; then "
        "use more epsilon or more units"
    ),
    message("noise would make the interval as wide as all effects that are possible"),
    message("the ridge that output perturbation needs leaves residual confounding of unknown size"),
    message("the share of compliers is not distinguishable from 0; report the intention-to-treat effect"),
    message(
        "too few units are at risk in an arm or stratum, beside the noise: choose an earlier horizon, fewer "
        "intervals or strata, or more epsilon"
    ),
    message("an arm is so small that many of its propensities may be beyond {clip}; lower clip"),
    message("scores beyond the limit may bias the estimate by more than the interval would show; raise limit"),
    message("few strata contain both arms, so noise dominates their size; use fewer or wider strata"),
    message("too many strata for so few units to estimate the variance within them; use fewer or wider strata"),
    message("two sites have no median site"),
    message("two sites cannot estimate how far sites are apart"),
    message("two sites cannot estimate heterogeneity; sample_size has an interval for the units of these two"),
    message("the sampling error was not asked for"),
)

WARNINGS = (
    message(
        "outcomes are missing more often with {more} ({most} %) than with {less} ({least} %), beyond chance and noise. "
        "If units without an outcome differ from the others in what is not adjusted for, the estimate is biased, and "
        "the interval does not show it. Adjust for what predicts that an outcome is missing, or make it part of the "
        "outcome"
    ),
)

RECORDED = (
    *(*ESTIMANDS, *METHODS, *ASSUMPTIONS, *DATA_HANDLING, *NOTES, *DIAGNOSES, *NO_INTERVAL, *WARNINGS),
    SAMPLING_BELOW_NOISE,
)
