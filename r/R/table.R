# The declared columns of a data frame, as bytes. Only the type of a column decides whether it can be sent.

encode_columns <- function(data, names) {
  unname(lapply(intersect(names, names(data)), function(name) encode_column(name, data[[name]])))
}

encode_column <- function(name, column) {
  encoded <- if (is.factor(column)) {
    text(as.integer(column), levels(column))
  } else if (inherits(column, "Date")) {
    bytes("date", as.double(unclass(column)))
  } else if (inherits(column, "POSIXct")) {
    # The time of day as its own time zone shows it, without the zone.
    bytes("time", as.double(as.POSIXct(as.POSIXlt(column), tz = "UTC")))
  } else if (is.object(column)) {
    NULL
  } else if (is.character(column)) {
    values <- unique(column[!is.na(column)])
    text(match(column, values), values)
  } else if (is.logical(column)) {
    bytes("logical", as.integer(column))
  } else if (is.integer(column)) {
    bytes("integer", column)
  } else if (is.double(column)) {
    bytes("double", column)
  }
  if (is.null(encoded) || !is.null(dim(column))) {
    stop_expected(
      "TableError", paste0("numbers, logicals, text, a factor, dates or times in column '", name, "'"),
      paste("class", paste(class(column), collapse = "/")),
      paste(
        "convert it first: as.numeric(), as.character(), as.numeric(x, units = \"days\") for differences of times,",
        "or haven::as_factor() for labelled columns."
      )
    )
  }
  c(list(name = enc2utf8(name)), encoded)
}

text <- function(places, values) {
  # Bytes that are no UTF-8 must not decide whether a table can be opened.
  values <- iconv(enc2utf8(values), "UTF-8", "UTF-8", sub = "byte")
  c(bytes("text", places - 1L), list(levels = as.list(values)))
}

bytes <- function(kind, values) {
  content <- writeBin(as.vector(values), raw(), endian = "little")
  list(kind = kind, bytes = length(content), content = content)
}
