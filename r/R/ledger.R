#' Create a ledger, and see what was spent
#'
#' A ledger records every answer about one data set and enforces its budget. The
#' budget is final: it cannot be raised later. Every entry is verified whenever
#' the ledger is read.
#'
#' `dp_ledger_add_version()` declares a new version of the data, after an update.
#' The budget stays the same: spending on all versions adds up.
#'
#' @param ledger Where the ledger is: a file such as `"ledger.db"`, or the
#'   address of a PostgreSQL database.
#' @param epsilon,delta The total budget.
#' @param as_of The version of the data: a date or a name. It is public.
#' @param rule How spending adds up: `"additive"` or `"zcdp"`.
#' @param x A ledger.
#' @param ... Not used.
#' @return An object of class `dpcausal_ledger`. `tidy()` returns a tibble with
#'   one row for each payment, `glance()` one with the budget, what was spent
#'   and what is left.
#' @examplesIf dpcausal::dp_available()
#' file <- tempfile(fileext = ".db")
#' dp_ledger_create(file, epsilon = 3, as_of = "2026-06-30")
#' glance(dp_ledger_show(file))
#' @export
dp_ledger_create <- function(ledger, epsilon, as_of, delta = 0, rule = c("additive", "zcdp")) {
  invisible(new_ledger(ask("create_ledger", list(
    place = place_of(ledger), epsilon = epsilon, as_of = format(as_of), delta = delta, rule = match.arg(rule)
  ))))
}

#' @rdname dp_ledger_create
#' @export
dp_ledger_show <- function(ledger) {
  new_ledger(ask("show_ledger", list(place = place_of(ledger))))
}

#' @rdname dp_ledger_create
#' @export
dp_ledger_add_version <- function(ledger, as_of) {
  invisible(new_ledger(ask("add_version", list(place = place_of(ledger), as_of = format(as_of)))))
}

new_ledger <- function(result) {
  structure(result, class = "dpcausal_ledger")
}

# The address of a ledger; a file as its whole path, since the Python process may be in another folder.
place_of <- function(ledger) {
  if (inherits(ledger, "dpcausal_ledger") || inherits(ledger, "dpcausal_vault")) {
    return(if (inherits(ledger, "dpcausal_ledger")) ledger$place else ledger$ledger)
  }
  if (!is.character(ledger) || length(ledger) != 1L || is.na(ledger) || !nzchar(ledger)) {
    stop_expected("LedgerError", "the file of a ledger", paste("class", class(ledger)[1]), "write for instance \"ledger.db\".")
  }
  whole_path(ledger)
}

# The whole path of a file that need not exist yet; an address as it is.
whole_path <- function(file) {
  if (grepl("://", file, fixed = TRUE)) {
    return(file)
  }
  file.path(normalizePath(dirname(file), winslash = "/", mustWork = FALSE), basename(file))
}

#' @rdname dp_ledger_create
#' @method tidy dpcausal_ledger
#' @export
tidy.dpcausal_ledger <- function(x, ...) {
  column <- function(name, kind) vapply(x$payments, function(payment) payment[[name]], kind)
  tibble::tibble(
    date = as.Date(column("at", "")), query = column("query", ""), epsilon = column("epsilon", 0),
    delta = column("delta", 0)
  )
}

#' @rdname dp_ledger_create
#' @method glance dpcausal_ledger
#' @export
glance.dpcausal_ledger <- function(x, ...) {
  tibble::tibble(
    budget = x$budget$epsilon, spent = x$total$epsilon, left = x$remaining$epsilon, budget_delta = x$budget$delta,
    spent_delta = x$total$delta, rule = x$budget$rule, entries = x$entries
  )
}

#' @export
print.dpcausal_ledger <- function(x, ...) {
  cat("Ledger ", basename(x$place), ": epsilon ", number(x$total$epsilon), " of ", number(x$budget$epsilon),
    " spent, ", number(x$remaining$epsilon), " left\n", sep = "")
  cat("  data set  ", x$data_set, "\n", sep = "")
  cat(paste0("  version   ", unlist(x$versions), "\n"), sep = "")
  if (length(x$payments)) {
    print(tidy(x))
  }
  invisible(x)
}

number <- function(value) {
  format(signif(value, 4), big.mark = ",", scientific = FALSE, trim = TRUE, drop0trailing = TRUE)
}
