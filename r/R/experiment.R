#' Experiments with many metrics
#'
#' An experiment is a file that the command line and the Python package read too:
#' `dpcausal experiment init` makes one to fill in. One query answers all metrics.
#'
#' @param file The experiment's file, for instance `"experiment.toml"`.
#' @param experiment An experiment.
#' @param vault A [dp_vault()] on the experiment's `$schema`.
#' @param look For an experiment with several looks, which one.
#' @param x A scorecard.
#' @param ... Not used.
#' @return `dp_experiment_read()`: an object of class `dpcausal_experiment`, which
#'   [dp_plan()] plans. `dp_experiment_run()`: a scorecard; `tidy()` returns a
#'   tibble with one row for each metric and arm.
#' @examplesIf dpcausal::dp_available()
#' file <- tempfile(fileext = ".toml")
#' writeLines(c(
#'   "version = 1", "name = \"checkout\"", "question = \"Does it sell more?\"", "epsilon = 1.0",
#'   "[treatment]", "name = \"arm\"", "arms = [0, 1]", "compare = 1",
#'   "[[metrics]]", "[metrics.column]", "kind = \"binary\"", "name = \"bought\"", "values = [0, 1]", "missing = 0"
#' ), file)
#' tidy(dp_plan(dp_experiment_read(file), n = 10000, typical = list(bought = 0.02)))
#' @export
dp_experiment_read <- function(file) {
  read <- ask("read_experiment", list(toml = read_text(file)))
  schema <- new_schema(ask("schema", list(document = read$schema)))
  structure(list(toml = read$toml, schema = schema), class = "dpcausal_experiment")
}

#' @rdname dp_experiment_read
#' @export
dp_experiment_run <- function(experiment, vault, look = NULL) {
  check_class(experiment, "dpcausal_experiment", "an experiment", "read one with dp_experiment_read().")
  number <- open_number(vault)
  new_scorecard(ask("run_experiment", list(vault = number, experiment = experiment$toml, look = look)))
}

#' @rdname dp_plan
#' @param typical For an experiment, what to expect of columns by name: a share,
#'   or the two values between which most are.
#' @export
dp_plan.dpcausal_experiment <- function(x, n, typical = list(), ...) {
  new_scorecard(ask("plan_experiment", list(experiment = x$toml, n = n, typical = named(parameters(typical)))))
}

new_scorecard <- function(result) {
  structure(result, class = "dpcausal_scorecard")
}

#' @export
print.dpcausal_experiment <- function(x, ...) {
  cat(x$toml)
  invisible(x)
}

#' @export
print.dpcausal_scorecard <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname dp_experiment_read
#' @method tidy dpcausal_scorecard
#' @export
tidy.dpcausal_scorecard <- function(x, ...) {
  texts <- c("metric", "control", "treated", "segment", "verdict", "no_interval")
  numbers <- c(
    "control_mean", "treated_mean", "difference", "low", "high", "lift", "lift_low", "lift_high", "p_value",
    "adjusted_p_value", "detectable"
  )
  columns <- c(
    lapply(stats::setNames(nm = texts[1:4]), function(name) column_of(x$lines, name, "text")),
    lapply(stats::setNames(nm = numbers), function(name) column_of(x$lines, name, "number")),
    lapply(stats::setNames(nm = texts[5:6]), function(name) column_of(x$lines, name, "text"))
  )
  names(columns) <- gsub("_", ".", names(columns), fixed = TRUE)
  tibble::as_tibble(columns)
}
