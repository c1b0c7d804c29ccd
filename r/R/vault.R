#' Put a table behind its door
#'
#' The declared columns of a data frame go to the Python process through a pipe
#' and stay there; no file is written. From then on only noisy answers come out,
#' each of them debited from the ledger first.
#'
#' The number of people is public, and so are the sizes of the arms where the
#' schema declares arms public. Errors name columns and their types, never a
#' value.
#'
#' @param data A data frame; or a string that says where the table is: a
#'   `.parquet` or `.csv` file, or the address of a table in PostgreSQL.
#' @param schema A [dp_schema()].
#' @param ledger The ledger that [dp_ledger_create()] created.
#' @param as_of The version of the data, as the ledger knows it.
#' @param vault A vault.
#' @return `dp_vault()`: an object of class `dpcausal_vault`. It lives as long
#'   as the R session and cannot be saved. `dp_close()` releases the table and
#'   returns `NULL` invisibly.
#' @examplesIf dpcausal::dp_available()
#' trial <- data.frame(treat = rep(0:1, 1000), score = rnorm(2000, 5))
#' schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10))
#' file <- tempfile(fileext = ".db")
#' dp_ledger_create(file, epsilon = 1, as_of = "2026-06-30")
#' vault <- dp_vault(trial, schema, ledger = file, as_of = "2026-06-30")
#' vault
#' dp_close(vault)
#' @export
dp_vault <- function(data, schema, ledger, as_of) {
  check_class(schema, "dpcausal_schema", "a schema", "declare one with dp_schema().")
  place <- place_of(ledger)
  arguments <- list(schema = schema$document, ledger = place, as_of = format(as_of))
  if (is.data.frame(data)) {
    opened <- ask("open_vault", arguments, encode_columns(data, columns_of(schema)))
  } else {
    check_class(data, "character", "a data frame, or the place of a table", "convert it with as.data.frame().")
    opened <- ask("open_vault", c(arguments, table = whole_path(data)))
  }
  structure(
    list(
      number = opened$number, n = opened$n, text = opened$text, ledger = place, as_of = format(as_of),
      process = the$process$get_pid()
    ),
    class = "dpcausal_vault"
  )
}

#' @rdname dp_vault
#' @export
dp_close <- function(vault) {
  number <- open_number(vault)
  ask("close_vault", list(vault = number))
  invisible(NULL)
}

# The number of a vault in the process that opened it. Numbers start again in another process.
open_number <- function(vault) {
  check_class(vault, "dpcausal_vault", "a vault", "open one with dp_vault().")
  alive <- !is.null(the$process) && the$process$is_alive() && the$process$get_pid() == vault$process
  if (!alive) {
    stop_expected(
      "RefusedError", "a vault that is open", "one that was closed, or that an earlier session opened",
      "open it again with dp_vault(); its ledger still holds what was spent."
    )
  }
  vault$number
}

#' @export
print.dpcausal_vault <- function(x, ...) {
  cat(x$text, "\n", "data as of ", x$as_of, ", ledger ", basename(x$ledger), "\n", sep = "")
  invisible(x)
}
