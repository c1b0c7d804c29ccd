#' Declare the columns of a table
#'
#' A declaration says what is public about a table. Take bounds and values from
#' a codebook or the literature, never from the table: a bound that is read off
#' the data reveals somebody's value.
#'
#' Values beyond the bounds of `dp_real()` are moved to the bound. A missing
#' number counts as `missing`, the middle of the bounds unless declared. A value
#' that is not declared counts as `missing`: of `dp_binary()` that is the first
#' value unless declared, of `dp_category()` the last. Units whose arm is
#' missing or not declared are outside the comparison unless `undeclared` sends
#' them to an arm.
#'
#' @param name The column in the table.
#' @param arms Every arm, as written in the table.
#' @param labels What to call the arms, or the two values, in results.
#' @param reference The arm to compare with; the first one by default.
#' @param compare The arm that is compared with the reference; needed where
#'   there are more than two.
#' @param undeclared The arm to which a missing or undeclared value counts.
#' @param low,high Public bounds.
#' @param missing What a missing value counts as.
#' @param missing_codes Numbers that stand for a missing value, such as
#'   `c(-9, 999)`.
#' @param indicator Whether to declare a covariate `"<name> is missing"` too.
#' @param typical For a covariate: the two values between which about 90 % of units
#'   are, from the literature. Models measure the covariate by them.
#' @param transform For a covariate: how it enters models, `"linear"` by its value
#'   or `"log"` by its logarithm.
#' @param since For dates: the day 0. `low` and `high` are then days since it.
#' @param date_format How dates are written in a column of text, for instance
#'   `"%d.%m.%Y"`.
#' @param decimal,thousands,strip,percent How numbers are written in a column of
#'   text: the decimal sign, the sign between thousands (`""` for none), units to
#'   remove, and whether each cell ends in a percent sign. Unless a sign is given,
#'   `1,234` is 1234 and `1,5` is 1.5.
#' @param values Every value, as written in the table; two for `dp_binary()`.
#' @param aliases Other spellings in a column of text, as a named list:
#'   `list(drug = c("d", "new drug"))`.
#' @param strict Whether texts that differ in capitals or blanks are different.
#' @return A declaration, for [dp_schema()].
#' @examples
#' dp_treatment("arm", arms = c("placebo", "drug"))
#' dp_real("age", 18, 100)
#' dp_binary("died", labels = c("alive", "dead"))
#' dp_category("ward", c("north", "south", "not recorded"))
#' @name declarations
NULL

#' @rdname declarations
#' @export
dp_treatment <- function(name, arms = c(0, 1), labels = NULL, reference = NULL, compare = NULL, undeclared = NULL,
                         aliases = NULL, strict = FALSE) {
  declaration("treatment", NULL, list(
    name = name, arms = several(arms), labels = several(labels), reference = reference, compare = compare,
    undeclared = undeclared, aliases = aliases_of(aliases), strict = strict
  ))
}

#' @rdname declarations
#' @export
dp_real <- function(name, low, high, missing = NULL, missing_codes = NULL, indicator = FALSE, since = NULL,
                    date_format = NULL,
                    decimal = ".", thousands = NULL, strip = NULL, percent = FALSE, typical = NULL,
                    transform = NULL) {
  if (inherits(low, c("Date", "POSIXt")) || inherits(high, c("Date", "POSIXt"))) {
    stop_expected(
      "SchemaError", paste0("numbers as bounds of column '", name, "'"), "dates",
      "give the day 0 and bounds in days since it: low = 0, high = 730, since = \"2024-01-01\"."
    )
  }
  declaration("column", "real", list(
    name = name, low = low, high = high, missing = missing, indicator = indicator,
    missing_codes = several(missing_codes),
    since = if (!is.null(since)) format(since), date_format = several(date_format),
    decimal = if (decimal != ".") decimal, thousands = thousands, strip = several(strip),
    percent = percent, typical = several(typical), transform = transform
  ))
}

#' @rdname declarations
#' @export
dp_binary <- function(name, values = c(0, 1), labels = NULL, missing = NULL, aliases = NULL, strict = FALSE,
                      indicator = FALSE) {
  declaration("column", "binary", list(
    name = name, values = several(values), labels = several(labels), missing = missing, aliases = aliases_of(aliases),
    strict = strict, indicator = indicator
  ))
}

#' @rdname declarations
#' @export
dp_category <- function(name, values, missing = NULL, aliases = NULL, strict = FALSE, indicator = FALSE) {
  declaration("column", "category", list(
    name = name, values = several(values), missing = missing, aliases = aliases_of(aliases), strict = strict,
    indicator = indicator
  ))
}

#' Declare whose records they are
#'
#' Needed where a table holds several records of one person. One record of each
#' person is used, the first or the last by a column.
#'
#' @param name The column that says which person a record belongs to.
#' @param by The column that orders one person's records, for instance a date.
#' @param keep Which of them is used: `"first"` or `"last"`.
#' @param sum Numbers to add up over all records of a person.
#' @param count Columns of which to count the records where the cell is not
#'   empty.
#' @param date_format How dates are written where `by` is a column of text, for
#'   instance `"%d.%m.%Y"`; not needed for dates that are written year first.
#' @return A declaration, for [dp_schema()].
#' @examples
#' dp_unit("patient", by = "admitted")
#' @export
dp_unit <- function(name, by, keep = c("first", "last"), sum = NULL, count = NULL, date_format = NULL) {
  declaration("unit", NULL, list(
    name = name, by = by, keep = match.arg(keep), sum = several(sum), count = several(count),
    date_format = several(date_format)
  ))
}

#' Declare what is public about a table
#'
#' @param treatment A [dp_treatment()].
#' @param outcome A [dp_real()] or [dp_binary()].
#' @param covariates A list of [dp_real()], [dp_binary()] and [dp_category()].
#' @param unit A [dp_unit()] where people have several records.
#' @param protects What one person may change: `"record"` (everything),
#'   `"record_within_arm"` (everything but the arm, which a trial published) or
#'   `"outcome"` (covariates and arms are public). The ledger remembers it.
#' @param entry The column that says when a person entered a growing table, for
#'   looks that are paid for once. A person's value must never change. The
#'   ledger remembers it.
#' @return A schema: public, and safe to print, save and share.
#' @examplesIf dpcausal::dp_available()
#' dp_schema(
#'   treatment = dp_treatment("treat", labels = c("usual services", "training")),
#'   outcome = dp_real("earnings", 0, 60000),
#'   covariates = list(dp_real("age", 18, 60))
#' )
#' @export
dp_schema <- function(treatment, outcome, covariates = list(), unit = NULL,
                      protects = c("record", "record_within_arm", "outcome"), entry = NULL) {
  if (inherits(covariates, "dpcausal_declaration")) {
    covariates <- list(covariates)
  }
  hint <- paste(
    "use dp_treatment(), dp_real(), dp_binary(), dp_category() and dp_unit(),",
    "and list() for covariates: covariates = list(dp_real(\"age\", 18, 100), dp_binary(\"smokes\"))."
  )
  for (part in c(list(treatment, outcome), covariates, compact(list(unit)))) {
    check_class(part, "dpcausal_declaration", "a declaration", hint)
  }
  document <- list(
    treatment = unclass(treatment), outcome = unclass(outcome), covariates = lapply(unname(covariates), unclass),
    unit = if (!is.null(unit)) unclass(unit), protects = match.arg(protects), entry = entry
  )
  new_schema(ask("schema", list(document = compact(document))))
}

new_schema <- function(result) {
  structure(list(document = result$document, toml = result$toml), class = "dpcausal_schema")
}

# The names of the table's columns that a schema declares.
columns_of <- function(schema) {
  parts <- schema$document
  named <- c(list(parts$treatment, parts$outcome), parts$covariates)
  unique(c(vapply(named, function(part) part$name, ""), parts$unit$name, parts$unit$by))
}

declaration <- function(role, kind, values) {
  values <- compact(values)
  for (name in c("strict", "indicator", "percent")) {
    if (identical(values[[name]], FALSE)) values[[name]] <- NULL
  }
  structure(c(if (!is.null(kind)) list(kind = kind), values), role = role, class = "dpcausal_declaration")
}

several <- function(values) {
  if (is.null(values)) NULL else as.list(unname(values))
}

aliases_of <- function(aliases) {
  if (is.null(aliases)) NULL else lapply(aliases, several)
}

#' @export
print.dpcausal_declaration <- function(x, ...) {
  what <- if (is.null(x$kind)) attr(x, "role") else x$kind
  parts <- x[setdiff(names(x), c("kind", "name"))]
  shown <- vapply(parts, function(part) paste(unlist(part), collapse = ", "), "")
  cat(what, " '", x$name, "'", if (length(shown)) paste0(": ", paste(names(shown), shown, sep = " ", collapse = "; ")),
    "\n", sep = "")
  invisible(x)
}

#' @export
print.dpcausal_schema <- function(x, ...) {
  parts <- x$document
  cat("What is public about a table; protects ", parts$protects, "\n", sep = "")
  roles <- c("treatment", "outcome", rep("covariate", length(parts$covariates)))
  columns <- c(list(parts$treatment, parts$outcome), parts$covariates)
  for (place in seq_along(columns)) {
    cat("  ", format(roles[place], width = 11), describe(columns[[place]]), "\n", sep = "")
  }
  if (!is.null(parts$unit)) {
    cat("  unit       ", parts$unit$name, ": ", parts$unit$keep, " record by ", parts$unit$by, "\n", sep = "")
  }
  if (!is.null(parts$entry)) {
    cat("  entry      ", parts$entry, "\n", sep = "")
  }
  invisible(x)
}

describe <- function(column) {
  values <- column$arms
  if (is.null(values)) values <- column$values
  range <- if (is.null(values)) {
    paste(format(column$low, big.mark = ","), "to", format(column$high, big.mark = ","))
  } else {
    paste(unlist(values), collapse = ", ")
  }
  labels <- if (!is.null(column$labels)) paste0(" (", paste(unlist(column$labels), collapse = ", "), ")")
  paste0(column$name, ": ", range, labels)
}
