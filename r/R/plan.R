#' Plan a study
#'
#' Shows queries, price and expected precision. A plan reads no data and spends
#' nothing. Expectations come from the literature or a pilot, never from the
#' table.
#'
#' @param x A [dp_study()], a [dp_schema()] or a [dp_experiment_read()].
#' @param n The number of people.
#' @param width A target precision, as in estimate ± width: the plan then gives
#'   the epsilon, or the number of people, that it needs.
#' @param outcome_mean,outcome_sd The expected mean (of a binary outcome, the
#'   risk) and standard deviation of the outcome.
#' @param treated_share The expected share of treated people; 0.5 by default.
#' @param confounding The expected difference between arms without any effect,
#'   in standard deviations of the outcome.
#' @param estimator The name of an estimator, or a [dp_estimator()].
#' @param epsilon,delta The price.
#' @param trial Whether treatment was randomised.
#' @param object A plan.
#' @param ... Not used.
#' @return An object of class `dpcausal_plan`. `tidy()` returns a tibble of the
#'   estimators that fit, in the order of their expected error; `glance()` one
#'   row for this plan. `autoplot()` draws the expected precision against
#'   epsilon; it needs ggplot2. `plot()` prints it.
#' @examplesIf dpcausal::dp_available()
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 100))
#' plan <- dp_plan(schema, n = 1000, epsilon = 0.2, outcome_sd = 15, width = 2.5)
#' glance(plan)
#' @export
dp_plan <- function(x, n, ...) {
  UseMethod("dp_plan")
}

#' @rdname dp_plan
#' @export
dp_plan.dpcausal_schema <- function(x, n, epsilon, delta = 0, estimator = "difference_in_means", trial = TRUE,
                                    width = NULL, outcome_mean = NULL, outcome_sd = NULL, treated_share = NULL,
                                    confounding = NULL, ...) {
  direct <- list(
    schema = x$document, estimator = as_estimator(estimator), epsilon = epsilon, delta = delta, trial = trial
  )
  new_plan(ask("plan", list(
    n = n, width = width, direct = direct, outcome_mean = outcome_mean, outcome_sd = outcome_sd,
    treated_share = treated_share, confounding = confounding
  )))
}

#' @rdname dp_plan
#' @export
dp_plan.dpcausal_study <- function(x, n, width = NULL, outcome_mean = NULL, outcome_sd = NULL, treated_share = NULL,
                                   confounding = NULL, ...) {
  new_plan(ask("plan", list(
    n = n, width = width, study = x$toml, outcome_mean = outcome_mean, outcome_sd = outcome_sd,
    treated_share = treated_share, confounding = confounding
  )))
}

new_plan <- function(result) {
  structure(
    list(document = from_json(result$json), text = result$text),
    class = "dpcausal_plan"
  )
}

#' @export
print.dpcausal_plan <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname dp_plan
#' @method tidy dpcausal_plan
#' @export
tidy.dpcausal_plan <- function(x, ...) {
  rows <- x$document$estimators
  tibble::tibble(
    estimator = column_of(rows, "label", "text"), error = column_of(rows, "error", "number"),
    half.width = column_of(rows, "half_width", "number"), sampling.sd = column_of(rows, "sampling_sd", "number"),
    privacy.sd = column_of(rows, "privacy_sd", "number"), bias = column_of(rows, "bias", "number")
  )
}

#' @rdname dp_plan
#' @method glance dpcausal_plan
#' @export
glance.dpcausal_plan <- function(x, ...) {
  one <- list(x$document)
  tibble::tibble(
    n = column_of(one, "n", "whole"), epsilon = x$document$guarantee$epsilon, delta = x$document$guarantee$delta,
    half.width = column_of(one, "half_width", "number"),
    smallest.detectable = column_of(one, "smallest_detectable", "number"),
    sampling.sd = column_of(one, "sampling_sd", "number"), privacy.sd = column_of(one, "privacy_sd", "number"),
    epsilon.needed = column_of(one, "epsilon_needed", "number"), n.needed = column_of(one, "units_needed", "number"),
    total.epsilon = x$document$price$epsilon, total.delta = x$document$price$delta
  )
}

#' @rdname dp_plan
#' @exportS3Method ggplot2::autoplot
autoplot.dpcausal_plan <- function(object, ...) {
  curves <- object$document$widths
  curves <- curves[order(names(curves) != "this study")]
  rows <- do.call(rbind, lapply(names(curves), function(name) {
    data.frame(
      estimator = name, epsilon = vapply(curves[[name]], function(point) as.double(point[[1]]), 0),
      half.width = vapply(curves[[name]], function(point) as.double(point[[2]]), 0)
    )
  }))
  rows$estimator <- factor(rows$estimator, levels = names(curves))
  ggplot2::ggplot(rows, ggplot2::aes(
    x = .data$epsilon, y = .data$half.width, colour = .data$estimator, linetype = .data$estimator
  )) +
    ggplot2::geom_vline(xintercept = object$document$guarantee$epsilon, colour = "grey50", linetype = "dashed") +
    ggplot2::geom_line(linewidth = 0.9) +
    ggplot2::scale_x_log10() +
    ggplot2::scale_y_log10() +
    ggplot2::scale_colour_manual(values = rep_len(okabe_ito, nlevels(rows$estimator))) +
    ggplot2::labs(
      x = "epsilon (dashed: as planned)", y = "expected \u00b1 around the estimate", colour = NULL, linetype = NULL,
      subtitle = "95 % interval; a plan reads no data"
    ) +
    plot_theme()
}

#' @rdname dp_plan
#' @export
plot.dpcausal_plan <- function(x, ...) {
  print_plot(x, ...)
}

okabe_ito <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
