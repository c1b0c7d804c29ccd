# Errors: what was expected, what was found, and what to do. None quotes a cell.

stop_dpcausal <- function(kind, expected, got, hint) {
  words <- tolower(gsub("(?<=[a-z])(?=[A-Z])", "_", kind, perl = TRUE))
  stop(structure(
    class = c(paste0("dpcausal_", words), "dpcausal_error", "error", "condition"),
    list(
      message = paste0("expected ", expected, ", got ", got, "\nHint: ", hint),
      call = NULL, expected = expected, got = got, hint = hint
    )
  ))
}

check_class <- function(value, class, what, hint) {
  if (!inherits(value, class)) {
    stop_dpcausal("ArgumentError", what, paste("an object of class", class(value)[1]), hint)
  }
  invisible(value)
}
