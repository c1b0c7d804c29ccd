"""Texts that estimators record in an effect, marked for translation: estimands, guarantees and common assumptions.

An effect keeps the English text. A page shows the translation where there is one; texts with names and numbers in them
stay in English.
"""

from dpcausal.page.language import message

RECORDED = (
    message("average treatment effect"),
    message("average treatment effect (risk difference)"),
    message("average treatment effect: mean outcome with all treated minus mean outcome with none"),
    message("average treatment effect (risk difference): mean outcome with all treated minus mean outcome with none"),
    message("average treatment effect on the treated"),
    message("average treatment effect on the controls"),
    message("average treatment effect in the overlap population, a unit counting as e (1 - e), e its propensity score"),
    message("difference in means, noisy arm sizes"),
    message("difference in means, public arm sizes"),
    message("treatment was randomised"),
    message("arms are comparable without adjustment, as in a randomised trial"),
    message("one unit's outcome does not depend on another unit's arm"),
    message("one unit's whole record replaced by any other; n is public"),
    message("one unit's covariates and outcome replaced by any others; n and every unit's arm are public"),
    message("one unit's outcome replaced by any other; n, covariates and arms are public"),
    message("the sampling error is below the noise floor; the value shown is an upper bound"),
    message("answered"),
)
