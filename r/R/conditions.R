# Errors: what is wrong, and what to do. None quotes a cell.

stop_expected <- function(kind, expected, got, hint) {
  found <- if (startsWith(got, "none")) paste0(", and there is ", got) else paste0(", not ", got)
  stop_dpcausal(kind, paste0("This needs ", expected, found), hint)
}

stop_dpcausal <- function(kind, problem, hint) {
  words <- tolower(gsub("(?<=[a-z])(?=[A-Z])", "_", kind, perl = TRUE))
  stop(structure(
    class = c(paste0("dpcausal_", words), "dpcausal_error", "error", "condition"),
    list(
      message = paste0(problem, ".\nHint: ", hint),
      call = NULL, problem = problem, hint = hint
    )
  ))
}

check_class <- function(value, class, what, hint) {
  if (!inherits(value, class)) {
    stop_expected("ArgumentError", what, paste("an object of class", class(value)[1]), hint)
  }
  invisible(value)
}
