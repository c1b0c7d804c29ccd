# An effect is kept as the JSON that Python wrote, with its text and its tidy lines at 95 %: it prints without Python.

new_effect <- function(result, diagnoses = list()) {
  structure(
    list(
      json = result$json, text = result$text, lines = result$lines, sites = result$sites, diagnoses = diagnoses
    ),
    class = "dpcausal_effect"
  )
}

lines_of <- function(effect, level) {
  if (isTRUE(all.equal(level, 0.95))) effect$lines else ask("lines", list(effect = effect$json, level = level))
}

# Columns of lines that came as JSON. What is absent there is NA.
column_of <- function(lines, name, kind) {
  absent <- switch(kind, text = NA_character_, whole = NA_integer_, NA_real_)
  values <- lapply(lines, function(line) if (is.null(line[[name]])) absent else line[[name]])
  switch(kind,
    text = vapply(values, as.character, ""),
    whole = vapply(values, as.integer, 0L),
    vapply(values, function(value) as.double(sub("inf", "Inf", value, fixed = TRUE)), 0)
  )
}

#' Use an estimated effect
#'
#' @param x,object An effect from [dp_estimate()], [dp_run()] or [dp_effect_read()].
#' @param conf.int Whether to give the limits of the interval.
#' @param conf.level,level The level of the interval.
#' @param parm Not used: an effect has one parameter.
#' @param ... For `plot()`, what `autoplot()` takes; otherwise not used.
#' @return
#' * `tidy()`: a tibble with one row for the effect and one for each further
#'   contrast: `term`, `estimate`, `std.error`, its parts `sampling.sd` and
#'   `privacy.sd`, `p.value`, `conf.low` and `conf.high`; `between.sd` too, the
#'   part between sites, where several sites were pooled. What was refused or is
#'   not known is `NA`, and `no.interval` in `glance()` says why.
#' * `glance()`: a tibble with one row: the number of people, the price, what it
#'   protects, the method and the version of the data.
#' * `confint()`: a matrix with one row.
#' * `coef()`: the estimate. `nobs()`: the number of people, which is public.
#' * `summary()`: everything that is needed to interpret the effect, with the
#'   assumptions and the receipts.
#' * `autoplot()`: a plot of the effect and its interval; the thick part is what
#'   sampling error alone would give. It needs ggplot2. `plot()` prints it.
#' @examplesIf dpcausal::dp_available()
#' trial <- data.frame(treat = rep(0:1, 1000), score = rnorm(2000, 5) + rep(0:1, 1000))
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10))
#' file <- tempfile(fileext = ".db")
#' dp_ledger_create(file, epsilon = 2, as_of = "2026-06-30")
#' vault <- dp_vault(trial, schema, ledger = file, as_of = "2026-06-30")
#' effect <- dp_estimate(vault, epsilon = 1)
#' dp_close(vault)
#' tidy(effect, conf.level = 0.9)
#' glance(effect)
#' confint(effect)
#' summary(effect)
#' @method tidy dpcausal_effect
#' @export
tidy.dpcausal_effect <- function(x, conf.int = TRUE, conf.level = 0.95, ...) {
  lines <- lines_of(x, conf.level)
  group <- column_of(lines, "group", "text")
  contrast <- paste(column_of(lines, "treated", "text"), "vs", column_of(lines, "control", "text"))
  table <- tibble::tibble(
    term = ifelse(is.na(group), contrast, group),
    outcome = column_of(lines, "outcome", "text"),
    estimate = column_of(lines, "estimate", "number"),
    std.error = column_of(lines, "std_error", "number"),
    sampling.sd = column_of(lines, "sampling_sd", "number"),
    between.sd = column_of(lines, "between_sd", "number"),
    privacy.sd = column_of(lines, "privacy_sd", "number"),
    p.value = column_of(lines, "p_value", "number")
  )
  if (!length(x$sites)) {
    table$between.sd <- NULL
  }
  if (conf.int) {
    table$conf.low <- column_of(lines, "conf_low", "number")
    table$conf.high <- column_of(lines, "conf_high", "number")
  }
  table
}

#' @rdname tidy.dpcausal_effect
#' @method glance dpcausal_effect
#' @export
glance.dpcausal_effect <- function(x, ...) {
  line <- x$lines[1]
  tibble::tibble(
    nobs = column_of(line, "n", "whole"),
    epsilon = column_of(line, "epsilon", "number"),
    delta = column_of(line, "delta", "number"),
    protects = column_of(line, "protects", "text"),
    method = column_of(line, "method", "text"),
    estimand = column_of(line, "estimand", "text"),
    no.interval = column_of(line, "no_interval", "text"),
    as.of = column_of(line, "as_of", "text")
  )
}

#' @rdname tidy.dpcausal_effect
#' @export
confint.dpcausal_effect <- function(object, parm, level = 0.95, ...) {
  row <- tidy(object, conf.level = level)[1, ]
  refusal <- glance(object)$no.interval
  if (!is.na(refusal)) {
    stop_expected(
      "RefusedError", "an effect with an interval", paste("none:", refusal),
      "print the effect to see the rest; tidy() has its privacy.sd in any case."
    )
  }
  tails <- c((1 - level) / 2, (1 + level) / 2)
  matrix(c(row$conf.low, row$conf.high), 1, dimnames = list(row$term, paste(format(100 * tails, trim = TRUE), "%")))
}

#' @rdname tidy.dpcausal_effect
#' @export
coef.dpcausal_effect <- function(object, ...) {
  row <- tidy(object)[1, ]
  stats::setNames(row$estimate, row$term)
}

#' @rdname tidy.dpcausal_effect
#' @importFrom stats nobs
#' @export
nobs.dpcausal_effect <- function(object, ...) {
  glance(object)$nobs
}

#' @rdname tidy.dpcausal_effect
#' @export
summary.dpcausal_effect <- function(object, ...) {
  structure(list(text = object$text), class = "summary.dpcausal_effect")
}

#' @export
print.summary.dpcausal_effect <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @export
print.dpcausal_effect <- function(x, ...) {
  row <- tidy(x)[1, ]
  about <- glance(x)
  cat("Effect of ", row$term, " on ", row$outcome, "\n", sep = "")
  cat("  estimate  ", number(row$estimate), "\n", sep = "")
  interval <- if (is.na(about$no.interval)) {
    paste(number(row$conf.low), "to", number(row$conf.high), "(95 %)")
  } else {
    paste("none:", about$no.interval)
  }
  cat("  interval  ", interval, "\n", sep = "")
  cat("  errors    sampling ", number(row$sampling.sd), ", privacy noise ", number(row$privacy.sd), "\n", sep = "")
  cat("  privacy   epsilon ", number(about$epsilon), ", delta ", format(about$delta), "; ",
    number(about$nobs), " people\n", sep = "")
  cautions <- column_of(x$lines[1], "warnings", "text")
  if (!is.na(cautions)) {
    cat(strwrap(cautions, width = getOption("width"), initial = "  WARNING   ", prefix = strrep(" ", 12)), sep = "\n")
  }
  cat("summary() shows assumptions and receipts\n")
  invisible(x)
}

#' @rdname tidy.dpcausal_effect
#' @exportS3Method ggplot2::autoplot
autoplot.dpcausal_effect <- function(object, level = 0.95, ...) {
  rows <- tidy(object, conf.level = level)
  rows$term <- factor(rows$term, levels = rev(rows$term))
  z <- stats::qnorm((1 + level) / 2)
  rows$sampling.low <- rows$estimate - z * rows$sampling.sd
  rows$sampling.high <- rows$estimate + z * rows$sampling.sd
  seen <- is.na(rows$conf.low)
  rows$sampling.low[seen] <- rows$sampling.high[seen] <- NA
  parts <- c("with privacy noise", "sampling error alone")
  ggplot2::ggplot(rows, ggplot2::aes(x = .data$estimate, y = .data$term)) +
    ggplot2::geom_vline(xintercept = 0, colour = "grey50", linetype = "dashed") +
    ggplot2::geom_linerange(
      ggplot2::aes(xmin = .data$conf.low, xmax = .data$conf.high, colour = parts[1], linewidth = parts[1]),
      na.rm = TRUE
    ) +
    ggplot2::geom_linerange(
      ggplot2::aes(xmin = .data$sampling.low, xmax = .data$sampling.high, colour = parts[2], linewidth = parts[2]),
      na.rm = TRUE
    ) +
    ggplot2::geom_point(size = 3.5, shape = 21, fill = "white", stroke = 1.2, na.rm = TRUE) +
    ggplot2::scale_colour_manual(values = stats::setNames(c("#D55E00", "#0072B2"), parts), breaks = parts) +
    ggplot2::scale_discrete_manual("linewidth", values = stats::setNames(c(1, 3), parts), breaks = parts) +
    ggplot2::labs(
      x = paste("effect on", rows$outcome[1]), y = NULL, colour = NULL, linewidth = NULL,
      subtitle = paste0(format(100 * level), " % interval")
    ) +
    plot_theme()
}

#' @rdname tidy.dpcausal_effect
#' @export
plot.dpcausal_effect <- function(x, ...) {
  print_plot(x, ...)
}

print_plot <- function(x, ...) {
  print(ggplot2::autoplot(x, ...))
  invisible(x)
}

plot_theme <- function() {
  ggplot2::theme_minimal(base_size = 12) +
    ggplot2::theme(
      legend.position = "top", panel.grid.minor = ggplot2::element_blank(),
      plot.background = ggplot2::element_rect(fill = "white", colour = NA)
    )
}

#' Effects on other scales
#'
#' Ratios and the number needed to treat follow from released numbers and cost
#' nothing. Those that the effect does not allow are left out: odds ratios need
#' a binary outcome, for instance.
#'
#' @param effect An effect from [dp_estimate()] or [dp_run()].
#' @param level The level of the intervals.
#' @return A tibble with one row for each measure.
#' @examplesIf dpcausal::dp_available()
#' trial <- data.frame(treat = rep(0:1, 2000), died = rbinom(4000, 1, 0.3))
#' schema <- dp_schema(dp_treatment("treat"), dp_binary("died"))
#' file <- tempfile(fileext = ".db")
#' dp_ledger_create(file, epsilon = 2, as_of = "2026-06-30")
#' vault <- dp_vault(trial, schema, ledger = file, as_of = "2026-06-30")
#' dp_measures(dp_estimate(vault, epsilon = 1))
#' dp_close(vault)
#' @export
dp_measures <- function(effect, level = 0.95) {
  check_class(effect, "dpcausal_effect", "an effect", "estimate one with dp_estimate().")
  found <- ask("measures", list(effect = effect$json, level = level))
  tibble::tibble(
    measure = column_of(found, "measure", "text"), estimate = column_of(found, "estimate", "number"),
    conf.low = column_of(found, "low", "number"), conf.high = column_of(found, "high", "number")
  )
}

#' Save an effect, and read one that others wrote
#'
#' The file is the `effect.json` that `dpcausal run` writes and that
#' `dpcausal federation run --json` prints, so the pooled effect of a federated
#' study can be read in R. It holds released numbers only: it is public.
#'
#' @param effect An effect from [dp_estimate()] or [dp_run()].
#' @param file The file, for instance `"effect.json"`.
#' @return `dp_effect_read()`: an effect, see [tidy.dpcausal_effect()].
#'   `dp_effect_write()`: the file's name, invisibly.
#' @examplesIf dpcausal::dp_available()
#' trial <- data.frame(treat = rep(0:1, 1000), score = rnorm(2000, 5) + rep(0:1, 1000))
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10))
#' ledger <- dp_ledger_create(tempfile(fileext = ".db"), epsilon = 2, as_of = "2026-06-30")
#' vault <- dp_vault(trial, schema, ledger = ledger, as_of = "2026-06-30")
#' file <- tempfile(fileext = ".json")
#' dp_effect_write(dp_estimate(vault, epsilon = 1), file)
#' dp_effect_read(file)
#' dp_close(vault)
#' @export
dp_effect_read <- function(file) {
  new_effect(ask("read_effect", list(text = read_text(file))))
}

#' @rdname dp_effect_read
#' @export
dp_effect_write <- function(effect, file) {
  check_class(effect, "dpcausal_effect", "an effect", "estimate one with dp_estimate().")
  write_text(paste0(effect$json, "\n"), file)
}

#' The sites of a federated study
#'
#' @param effect An effect that was pooled over sites, from [dp_effect_read()].
#' @return A tibble with one row for each site: its status, the number of people,
#'   its own estimate and standard error, and its weight in the pooled effect.
#'   It has no rows where the effect comes from one table.
#' @examplesIf dpcausal::dp_available() && file.exists("effect.json")
#' dp_sites(dp_effect_read("effect.json"))
#' @export
dp_sites <- function(effect) {
  check_class(effect, "dpcausal_effect", "an effect", "read one with dp_effect_read().")
  tibble::tibble(
    site = column_of(effect$sites, "site", "text"), status = column_of(effect$sites, "status", "text"),
    nobs = column_of(effect$sites, "n", "whole"), estimate = column_of(effect$sites, "estimate", "number"),
    std.error = column_of(effect$sites, "std_error", "number"),
    weight = column_of(effect$sites, "weight", "number")
  )
}
