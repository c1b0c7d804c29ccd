#' Write a whole study down, and run it
#'
#' A study is fixed before anything is read: its question, design, schema,
#' estimator, price and required diagnostics. It is the same file that the
#' command line and the Python package read.
#'
#' @param name What to call it.
#' @param question The question it answers, in words.
#' @param schema A [dp_schema()].
#' @param estimator The name of an estimator, or a [dp_estimator()].
#' @param epsilon,delta The price of the estimator.
#' @param design `"trial"` if treatment was randomised, otherwise
#'   `"observational"`.
#' @param eligibility,time_zero Who is in the table and when follow-up begins,
#'   in words.
#' @param confounders For each covariate that the estimator adjusts for, why; a
#'   named character vector.
#' @param bounds Who chose the bounds and values (`by`), when (`on`), and where
#'   they come from (`source`); a named character vector.
#' @param expected Expectations from the literature, for plans; a named numeric
#'   vector, such as `c(outcome_mean = 8000, outcome_sd = 6000)`.
#' @param requires Diagnostics that must not fail before the effect is asked
#'   for, each with an epsilon of its own: `list(balance = list(epsilon = 0.2, covariates = "age"))`.
#' @param study A study.
#' @param vault A [dp_vault()] with the same schema.
#' @param file The study's file, for instance `"study.toml"`.
#' @return `dp_study()` and `dp_study_read()`: an object of class
#'   `dpcausal_study`. `dp_study_write()`: the file's name, invisibly.
#'   `dp_run()`: an effect, with the required diagnostics in `$diagnoses`. If a
#'   required diagnostic fails, the effect is not asked for and its price is not
#'   spent: an error of class `dpcausal_diagnostic_failed` says what was found, and
#'   holds the diagnostics.
#' @examplesIf dpcausal::dp_available()
#' study <- dp_study(
#'   name = "training", question = "Does training raise earnings?", design = "trial",
#'   schema = dp_schema(dp_treatment("treat"), dp_real("earnings", 0, 60000)),
#'   epsilon = 1
#' )
#' study
#' @export
dp_study <- function(name, question, schema, estimator = "difference_in_means", epsilon, delta = 0,
                     design = c("observational", "trial"), eligibility = "", time_zero = "", confounders = NULL,
                     bounds = NULL, expected = NULL, requires = NULL) {
  check_class(schema, "dpcausal_schema", "a schema", "declare one with dp_schema().")
  document <- list(
    name = name, question = question, schema = schema$document, estimator = as_estimator(estimator),
    epsilon = epsilon, delta = delta, design = match.arg(design), eligibility = eligibility, time_zero = time_zero,
    confounders = as_table(confounders), bounds = as_table(bounds), expected = as_table(expected),
    requires = if (!is.null(requires)) lapply(requires, parameters)
  )
  made <- ask("study", list(document = compact(document)))
  structure(list(toml = made$toml, schema = schema), class = "dpcausal_study")
}

as_table <- function(values) {
  if (is.null(values)) NULL else as.list(values)
}

#' @rdname dp_study
#' @export
dp_study_read <- function(file) {
  read <- ask("read_study", list(toml = read_text(file)))
  schema <- new_schema(ask("schema", list(document = read$schema)))
  structure(list(toml = read$toml, schema = schema), class = "dpcausal_study")
}

#' @rdname dp_study
#' @export
dp_study_write <- function(study, file) {
  check_class(study, "dpcausal_study", "a study", "write one with dp_study().")
  write_text(study$toml, file)
}

read_text <- function(file) {
  if (!file.exists(file)) {
    stop_expected("StudyError", "a file that is there", file, "check its name and the working folder, getwd().")
  }
  paste0(paste(readLines(file, encoding = "UTF-8", warn = FALSE), collapse = "\n"), "\n")
}

write_text <- function(text, file) {
  if (!dir.exists(dirname(file))) {
    stop_expected("StudyError", "a folder that is there", dirname(file), "create it, or correct its name.")
  }
  connection <- file(file, open = "wb")
  on.exit(close(connection))
  writeBin(charToRaw(enc2utf8(text)), connection)
  invisible(file)
}

#' @export
print.dpcausal_study <- function(x, ...) {
  cat(x$toml)
  invisible(x)
}

#' @rdname dp_study
#' @export
dp_run <- function(study, vault) {
  check_class(study, "dpcausal_study", "a study", "write one with dp_study().")
  number <- open_number(vault)
  result <- ask("run_study", list(vault = number, study = study$toml))
  diagnoses <- lapply(result$diagnoses, new_diagnosis)
  if (is.null(result$effect)) {
    stop(structure(
      class = c("dpcausal_diagnostic_failed", "dpcausal_error", "error", "condition"),
      list(
        message = paste0(
          "a required diagnostic failed: the effect was not asked for, and its price was not spent\n",
          paste0("Hint: ", unlist(result$failed), collapse = "\n")
        ),
        call = NULL, diagnoses = diagnoses
      )
    ))
  }
  new_effect(result$effect, diagnoses)
}
