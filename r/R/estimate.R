#' Choose an estimator
#'
#' @param name The estimator: `"difference_in_means"` for a trial;
#'   `"stratification"` for a few discrete confounders;
#'   `"regression_adjustment"` and `"doubly_robust"` for up to about ten of any
#'   kind; `"inverse_weighting"`, `"propensity_matching"`, `"quantile_effects"`,
#'   `"survival"` and others: an unknown name lists all of them.
#' @param ... Its parameters, such as `covariates = c("age", "sex")` or
#'   `by = list("sex", dp_cut("age", c(40, 65)))`.
#' @param edges Where to cut a number into strata.
#' @return An estimator, for [dp_estimate()], [dp_plan()] and [dp_study()].
#' @examples
#' dp_estimator("doubly_robust", covariates = c("age", "sex"))
#' dp_estimator("stratification", by = list("sex", dp_cut("age", c(40, 65))))
#' @export
dp_estimator <- function(name, ...) {
  parameters <- list(...)
  if (length(parameters) && (is.null(names(parameters)) || any(!nzchar(names(parameters))))) {
    stop_expected("StudyError", "parameters with names", "one without", "write for instance covariates = \"age\".")
  }
  structure(c(list(name = name), parameters), class = "dpcausal_estimator")
}

#' @rdname dp_estimator
#' @export
dp_cut <- function(name, edges) {
  list(name = name, edges = several(edges))
}

as_estimator <- function(estimator) {
  if (is.character(estimator)) {
    estimator <- dp_estimator(estimator)
  }
  check_class(estimator, "dpcausal_estimator", "an estimator", "give its name, or dp_estimator().")
  parameters(estimator)
}

# Parameters for JSON: vectors become lists, those with names keep them, one value stays one value, a cut stays a cut.
parameters <- function(values) {
  lapply(unclass(values), function(value) {
    if (inherits(value, "dpcausal_estimator")) {
      parameters(value)
    } else if (is.list(value) && !is.null(names(value))) {
      value
    } else if (is.object(value) || !(is.atomic(value) || is.list(value))) {
      stop_expected(
        "StudyError", "parameters that are names, numbers or lists of these", paste("class", class(value)[1]),
        "name the covariates: covariates = c(\"age\", \"sex\")."
      )
    } else if (!is.null(names(value))) {
      as.list(value)
    } else if (length(value) == 1L && !is.list(value)) {
      value
    } else {
      several(value)
    }
  })
}

#' @export
print.dpcausal_estimator <- function(x, ...) {
  shown <- vapply(unclass(x)[-1], function(value) paste(unlist(value), collapse = ", "), "")
  cat("Estimator ", x$name, if (length(shown)) paste0(": ", paste(names(shown), shown, collapse = "; ")), "\n", sep = "")
  invisible(x)
}

#' Estimate an effect
#'
#' The price is debited from the ledger before the table is read. The same
#' question again returns the stored answer and costs nothing. A question beyond
#' the budget is refused before anything is read.
#'
#' @param vault A [dp_vault()].
#' @param estimator The name of an estimator, or a [dp_estimator()].
#' @param epsilon,delta The price.
#' @return An object of class `dpcausal_effect`: public, and safe to print, save
#'   and share. See [tidy.dpcausal_effect()].
#' @examplesIf dpcausal::dp_available()
#' trial <- data.frame(treat = rep(0:1, 1000), score = rnorm(2000, 5) + rep(0:1, 1000))
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10))
#' file <- tempfile(fileext = ".db")
#' dp_ledger_create(file, epsilon = 2, as_of = "2026-06-30")
#' vault <- dp_vault(trial, schema, ledger = file, as_of = "2026-06-30")
#' effect <- dp_estimate(vault, epsilon = 1)
#' effect
#' tidy(effect)
#' dp_close(vault)
#' @export
dp_estimate <- function(vault, estimator = "difference_in_means", epsilon, delta = 0) {
  number <- open_number(vault)
  new_effect(ask("estimate", list(
    vault = number, estimator = as_estimator(estimator), epsilon = epsilon, delta = delta
  )))
}
