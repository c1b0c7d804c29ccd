#' dpcausal: differentially private causal inference
#'
#' Estimate treatment effects from personal records and publish them under
#' differential privacy. The functions, in the order of a study:
#'
#' * Declare what is public: [dp_schema()] with [dp_treatment()], [dp_real()],
#'   [dp_binary()] and [dp_category()].
#' * Plan, without reading data: [dp_plan()].
#' * Fix the budget: [dp_ledger_create()]; see what was spent: [dp_ledger_show()].
#' * Put the data frame behind its door: [dp_vault()].
#' * Check the design, for a price: [dp_balance()] and [dp_overlap()].
#' * Estimate: [dp_estimate()] with [dp_estimator()], or a whole study with
#'   [dp_study()] and [dp_run()].
#' * Use the result: [tidy()][tidy.dpcausal_effect], `confint()`, `summary()`, `autoplot()`,
#'   [dp_measures()], [dp_report()].
#'
#' All records, noise and accounting are handled by the Python package
#' `dpcausal` in a process of its own: see [dp_python()].
#'
#' @keywords internal
"_PACKAGE"

#' @importFrom generics tidy
#' @export
generics::tidy

#' @importFrom generics glance
#' @export
generics::glance

# The pronoun of tidy evaluation in ggplot2's aes().
utils::globalVariables(".data")
