#' Effects that vary
#'
#' @param vault A [dp_vault()].
#' @param estimator `"subgroup_effects"`, `"r_learner"` or `"dr_learner"`, or a
#'   [dp_estimator()] of these with its parameters.
#' @param epsilon,delta The price.
#' @param x A curve.
#' @param at A data frame of profiles: public values of the curve's covariates,
#'   not records. By default those that printing shows. They cost nothing.
#' @param conf.level The level of the intervals, which hold simultaneously.
#' @param ... Not used.
#' @return `dp_curve()`: an object of class `dpcausal_curve`; `tidy()` returns a
#'   tibble with one row for each profile.
#' @examplesIf dpcausal::dp_available()
#' study <- data.frame(treat = rep(0:1, 2000), score = rnorm(4000, 5), ward = rep(c("a", "b"), each = 2000))
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10), list(dp_category("ward", c("a", "b"))))
#' file <- tempfile(fileext = ".db")
#' dp_ledger_create(file, epsilon = 2, as_of = "2026-06-30")
#' vault <- dp_vault(study, schema, ledger = file, as_of = "2026-06-30")
#' tidy(dp_curve(vault, dp_estimator("subgroup_effects", by = "ward"), epsilon = 1))
#' dp_close(vault)
#' @export
dp_curve <- function(vault, estimator, epsilon, delta = 0) {
  number <- open_number(vault)
  result <- ask("estimate_curve", list(
    vault = number, estimator = as_estimator(estimator), epsilon = epsilon, delta = delta
  ))
  structure(result, class = "dpcausal_curve")
}

#' @export
print.dpcausal_curve <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname dp_curve
#' @method tidy dpcausal_curve
#' @export
tidy.dpcausal_curve <- function(x, at = NULL, conf.level = 0.95, ...) {
  profiles <- if (!is.null(at)) lapply(as.list(at), function(values) {
    several(if (is.factor(values)) as.character(values) else values)
  })
  rows <- ask("curve_lines", list(curve = x$json, level = conf.level, at = profiles))
  tibble::tibble(
    group = column_of(rows, "group", "text"), estimate = column_of(rows, "estimate", "number"),
    std.error = column_of(rows, "std_error", "number"), conf.low = column_of(rows, "conf_low", "number"),
    conf.high = column_of(rows, "conf_high", "number"), no.interval = column_of(rows, "no_interval", "text")
  )
}
