# The Python process that holds the vaults. Requests are lines of JSON, followed by the columns of a table as bytes.

the <- new.env(parent = emptyenv())
the$process <- NULL
the$last_id <- 0L
the$pending <- ""

#' The Python process behind the package
#'
#' The package runs `dpcausal`, a Python package, in a process of its own. The
#' process starts with the first call that needs it and ends with the R session.
#' Python is looked for in this order: the option `dpcausal.python`, the
#' environment variable `DPCAUSAL_PYTHON`, an active virtual environment
#' (`VIRTUAL_ENV`), then `python3` and `python` on the path.
#'
#' @return `dp_python()`: a tibble with one row: the Python executable, its
#'   version, and the version of `dpcausal` in it. `dp_stop()` ends the process
#'   and with it all open vaults, and returns `NULL` invisibly.
#' @examplesIf dpcausal::dp_available()
#' dp_python()
#' @export
dp_python <- function() {
  info <- ask("hello")
  tibble::tibble(executable = info$executable, python = info$python, dpcausal = info$version)
}

#' @rdname dp_python
#' @return `dp_available()`: whether a Python with `dpcausal` was found.
#' @export
dp_available <- function() {
  tryCatch({
    ask("hello")
    TRUE
  }, dpcausal_error = function(error) FALSE)
}

#' @rdname dp_python
#' @export
dp_stop <- function() {
  if (!is.null(the$process)) {
    the$process$kill()
  }
  the$process <- NULL
  the$pending <- ""
  invisible(NULL)
}

find_python <- function() {
  active <- Sys.getenv("VIRTUAL_ENV")
  inside <- if (.Platform$OS.type == "windows") "Scripts/python.exe" else "bin/python"
  choices <- c(
    getOption("dpcausal.python", ""), Sys.getenv("DPCAUSAL_PYTHON"),
    if (nzchar(active)) file.path(active, inside), Sys.which(c("python3", "python"))
  )
  chosen <- choices[nzchar(choices)]
  if (!length(chosen)) {
    stop_expected("PythonError", "a Python with dpcausal", "no Python", python_hint)
  }
  path.expand(chosen[[1]])
}

python_hint <- paste(
  "install dpcausal into a virtual environment and name its Python:",
  "Sys.setenv(DPCAUSAL_PYTHON = \"~/.venvs/dpcausal/bin/python\")"
)

start <- function() {
  python <- find_python()
  script <- system.file("python", "worker.py", package = "dpcausal", mustWork = TRUE)
  # Messages of libraries may quote the table: standard error is discarded.
  the$process <- tryCatch(
    processx::process$new(
      python, c("-B", script), stdin = "|", stdout = "|", stderr = NULL, encoding = "UTF-8",
      env = c("current", LD_LIBRARY_PATH = own_libraries(Sys.getenv("LD_LIBRARY_PATH")))
    ),
    error = function(error) NULL
  )
  the$pending <- ""
  if (is.null(the$process)) {
    stop_expected("PythonError", "a Python with dpcausal", paste(python, "which does not start"), python_hint)
  }
  the$last_id <- the$last_id + 1L
  send(request_line("hello", list(), NULL))
  reply <- receive()
  if (is.null(reply)) {
    dp_stop()
    stop_expected("PythonError", "a Python with dpcausal", paste(python, "which cannot import it"), python_hint)
  }
  check_version(reply$result$version)
}

# The library folders that somebody set, without those that R adds for itself: system libraries of another version
# keep a Python that brings its own from starting.
own_libraries <- function(path) {
  folders <- strsplit(path, ":", fixed = TRUE)[[1]]
  added <- startsWith(folders, R.home()) | grepl("^(/usr)?/lib(64)?(/|$)", folders)
  paste(folders[!added], collapse = ":")
}

check_version <- function(python) {
  r <- as.character(utils::packageVersion("dpcausal"))
  minor <- function(version) sub("^(\\d+\\.\\d+).*", "\\1", version)
  if (minor(python) != minor(r)) {
    dp_stop()
    stop_expected(
      "PythonError", paste0("dpcausal ", minor(r), " in Python, as in R"), paste("version", python),
      "install the same version on both sides."
    )
  }
}

# Ask the process; `columns` is what encode_columns() returns.
ask <- function(operation, arguments = list(), columns = NULL) {
  force(arguments) # which may ask the process too
  force(columns)
  if (is.null(the$process) || !the$process$is_alive()) {
    start()
  }
  the$last_id <- the$last_id + 1L
  send(request_line(operation, arguments, columns))
  for (column in columns) {
    send(column$content)
  }
  reply <- receive()
  if (is.null(reply)) {
    dp_stop()
    stop_expected(
      "PythonError", "an answer of the Python process", "its end",
      "open the vault again: its ledger holds what was spent. A table larger than memory is better given as a file."
    )
  }
  if (!is.null(reply$error)) {
    stop_dpcausal(reply$error$kind, reply$error$problem, reply$error$hint)
  }
  reply$result
}

request_line <- function(operation, arguments, columns) {
  request <- list(id = the$last_id, operation = operation, arguments = named(compact(arguments)))
  if (!is.null(columns)) {
    request$columns <- lapply(columns, function(column) column[names(column) != "content"])
  }
  charToRaw(enc2utf8(paste0(as_json(request), "\n")))
}

as_json <- function(value) {
  as.character(jsonlite::toJSON(value, auto_unbox = TRUE, digits = NA, null = "null", na = "null"))
}

from_json <- function(text) {
  jsonlite::fromJSON(text, simplifyVector = FALSE)
}

send <- function(content) {
  while (length(content) && the$process$is_alive()) {
    content <- the$process$write_input(content)
    if (length(content)) {
      Sys.sleep(0.001)
    }
  }
}

# Return the reply to the last request; NULL if the process has ended. Replies to interrupted requests are dropped.
receive <- function() {
  repeat {
    line <- read_line()
    if (is.null(line)) {
      return(NULL)
    }
    reply <- from_json(line)
    if (identical(as.integer(reply$id), the$last_id)) {
      return(reply)
    }
  }
}

read_line <- function() {
  parts <- the$pending
  repeat {
    last <- parts[length(parts)]
    if (grepl("\n", last, fixed = TRUE)) {
      at <- regexpr("\n", last, fixed = TRUE)
      the$pending <- substring(last, at + 1L)
      return(paste(c(parts[-length(parts)], substring(last, 1L, at - 1L)), collapse = ""))
    }
    the$process$poll_io(1000L)
    text <- the$process$read_output()
    if (!nzchar(text) && !the$process$is_alive() && !nzchar(text <- the$process$read_output())) {
      return(NULL)
    }
    parts <- c(parts, text)
    the$pending <- paste(parts[nzchar(parts)], collapse = "")
  }
}

compact <- function(values) {
  values[!vapply(values, is.null, logical(1))]
}

# An empty list without names would become a JSON array.
named <- function(values) {
  if (length(values)) values else structure(list(), names = character())
}
