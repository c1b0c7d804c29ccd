#' Check balance and overlap
#'
#' `dp_balance()` estimates standardised mean differences of covariates between
#' the arms, before and, with `weighted_by`, after weighting by a private
#' propensity score. `dp_overlap()` shows whether people of both arms can be
#' compared. Each has a price of its own, which is debited first.
#'
#' @param vault A [dp_vault()].
#' @param covariates The covariates to compare, or of the propensity score.
#' @param epsilon,delta The price.
#' @param weighted_by The covariates of the propensity score; none to compare
#'   the arms as they are.
#' @param most The largest difference that passes.
#' @param x,object A diagnosis.
#' @param ... For the diagnostics, further parameters, such as `estimand` and `clip`; for methods,
#'   not used.
#' @return An object of class `dpcausal_diagnosis`. `tidy()` of a balance returns
#'   a tibble with one row for each covariate: the difference before and after
#'   weighting, each with the bar of its noise; of an overlap, one row for each
#'   range of the score, or each stratum. `autoplot()` draws the balance; it needs ggplot2. `plot()` prints it.
#' @examplesIf dpcausal::dp_available()
#' study <- data.frame(treat = rep(0:1, 2000), score = rnorm(4000, 5), age = runif(4000, 18, 90))
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10), list(dp_real("age", 18, 90)))
#' file <- tempfile(fileext = ".db")
#' dp_ledger_create(file, epsilon = 2, as_of = "2026-06-30")
#' vault <- dp_vault(study, schema, ledger = file, as_of = "2026-06-30")
#' tidy(dp_balance(vault, "age", epsilon = 0.5))
#' dp_close(vault)
#' @export
dp_balance <- function(vault, covariates, epsilon, delta = 0, weighted_by = character(), most = 0.1, ...) {
  diagnose("balance", vault, epsilon, delta, list(
    covariates = several(covariates), weighted_by = several(weighted_by), most = most, ...
  ))
}

#' @rdname dp_balance
#' @export
dp_overlap <- function(vault, covariates, epsilon, delta = 0, ...) {
  diagnose("overlap", vault, epsilon, delta, list(covariates = several(covariates), ...))
}

diagnose <- function(name, vault, epsilon, delta, given) {
  number <- open_number(vault)
  new_diagnosis(ask("diagnose", list(
    vault = number, name = name, parameters = given, epsilon = epsilon, delta = delta
  )))
}

new_diagnosis <- function(result) {
  structure(result, class = c(paste0("dpcausal_", result$name), "dpcausal_diagnosis"))
}

#' @export
print.dpcausal_diagnosis <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

readings <- function(rows, name, part) {
  vapply(rows, function(row) if (is.null(row[[name]])) NA_real_ else as.double(row[[name]][[part]]), 0)
}

#' @rdname dp_balance
#' @method tidy dpcausal_balance
#' @export
tidy.dpcausal_balance <- function(x, ...) {
  rows <- from_json(x$json)$lines
  tibble::tibble(
    covariate = vapply(rows, function(row) row$name, ""),
    before = readings(rows, "before", "value"), before.bar = readings(rows, "before", "bar"),
    after = readings(rows, "after", "value"), after.bar = readings(rows, "after", "bar")
  )
}

#' @rdname dp_balance
#' @method tidy dpcausal_overlap
#' @export
tidy.dpcausal_overlap <- function(x, ...) {
  rows <- from_json(x$json)$bins
  tibble::tibble(
    bin = vapply(rows, function(row) row$name, ""),
    control = readings(rows, "control", "value"), control.bar = readings(rows, "control", "bar"),
    treated = readings(rows, "treated", "value"), treated.bar = readings(rows, "treated", "bar")
  )
}

#' @rdname dp_balance
#' @exportS3Method ggplot2::autoplot
autoplot.dpcausal_balance <- function(object, ...) {
  table <- tidy(object)
  most <- from_json(object$json)$most
  side <- function(when, value, bar) {
    data.frame(covariate = table$covariate, when = when, value = value, low = value - bar, high = value + bar)
  }
  rows <- rbind(
    side("before weighting", table$before, table$before.bar),
    if (!all(is.na(table$after))) side("after weighting", table$after, table$after.bar)
  )
  rows$covariate <- factor(rows$covariate, levels = rev(table$covariate))
  rows$when <- factor(rows$when, levels = c("before weighting", "after weighting"))
  apart <- ggplot2::position_dodge(width = 0.5)
  ggplot2::ggplot(rows, ggplot2::aes(
    x = .data$value, y = .data$covariate, colour = .data$when, shape = .data$when
  )) +
    ggplot2::annotate("rect", xmin = -most, xmax = most, ymin = -Inf, ymax = Inf, fill = "grey90") +
    ggplot2::geom_vline(xintercept = 0, colour = "grey50", linetype = "dashed") +
    ggplot2::geom_linerange(ggplot2::aes(xmin = .data$low, xmax = .data$high), position = apart, na.rm = TRUE) +
    ggplot2::geom_point(size = 3, position = apart, na.rm = TRUE) +
    ggplot2::scale_colour_manual(values = c("#D55E00", "#0072B2"), drop = TRUE) +
    ggplot2::labs(
      x = "standardised mean difference, treated less control", y = NULL, colour = NULL, shape = NULL,
      subtitle = "bars: 95 % of the privacy noise; grey: the differences that pass"
    ) +
    plot_theme()
}

#' @rdname dp_balance
#' @export
plot.dpcausal_balance <- function(x, ...) {
  print_plot(x, ...)
}
