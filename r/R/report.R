#' Write a report
#'
#' One page about an effect, with everything needed to judge it: verdict,
#' interval, assumptions, privacy guarantee and what was spent. It needs no
#' network and costs no budget.
#'
#' @param effect An effect from [dp_estimate()] or [dp_run()].
#' @param file The page to write, for instance `"report.html"`.
#' @param study The [dp_study()] that asked for it. Without it, the report says
#'   little about the design.
#' @param ledger The ledger that paid for it.
#' @param diagnoses Results of [dp_balance()] and [dp_overlap()]; by default
#'   those that the study required.
#' @param smallest_worthwhile_effect The minimal important difference, if one
#'   was chosen before the first release.
#' @param date The date of the report.
#' @return The verdict, one sentence, invisibly.
#' @examplesIf dpcausal::dp_available()
#' trial <- data.frame(treat = rep(0:1, 1000), score = rnorm(2000, 5) + rep(0:1, 1000))
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10))
#' ledger <- dp_ledger_create(tempfile(fileext = ".db"), epsilon = 2, as_of = "2026-06-30")
#' vault <- dp_vault(trial, schema, ledger = ledger, as_of = "2026-06-30")
#' effect <- dp_estimate(vault, epsilon = 1)
#' dp_close(vault)
#' dp_report(effect, tempfile(fileext = ".html"), ledger = ledger)
#' @export
dp_report <- function(effect, file, study = NULL, ledger = NULL, diagnoses = effect$diagnoses,
                      smallest_worthwhile_effect = 0, date = Sys.Date()) {
  check_class(effect, "dpcausal_effect", "an effect", "estimate one with dp_estimate().")
  if (inherits(diagnoses, "dpcausal_diagnosis")) {
    diagnoses <- list(diagnoses)
  }
  if (!is.null(study)) {
    check_class(study, "dpcausal_study", "a study", "write one with dp_study().")
  }
  made <- ask("report", list(
    effect = effect$json, day = format(date), study = study$toml,
    ledger = if (!is.null(ledger)) place_of(ledger),
    diagnoses = lapply(unname(diagnoses), function(each) list(name = each$name, json = each$json)),
    smallest_worthwhile_effect = smallest_worthwhile_effect
  ))
  write_text(made$html, file)
  message(made$verdict, "\nWrote ", file)
  invisible(made$verdict)
}
