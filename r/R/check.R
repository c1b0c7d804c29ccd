#' Inspect a table before it is queried
#'
#' For the owner of the data only: what this returns is **not private**. It counts
#' exactly, and quotes cells that do not read as declared. Do not share it, and do
#' not choose bounds by it. It is refused where a site's policy forbids it.
#'
#' @param table The place of a table, such as `"visits.csv"`.
#' @param schema A [dp_schema()].
#' @return A character vector, one line for each finding.
#' @examplesIf dpcausal::dp_available()
#' file <- tempfile(fileext = ".csv")
#' write.csv(data.frame(treat = 0:1, score = c("5", "about 6")), file, row.names = FALSE)
#' dp_check(file, dp_schema(dp_treatment("treat"), dp_real("score", 0, 10)))
#' @export
dp_check <- function(table, schema) {
  check_class(schema, "dpcausal_schema", "a schema", "declare one with dp_schema().")
  check_class(table, "character", "the place of a table, such as \"visits.csv\"", "in R, look at a data frame itself.")
  unlist(ask("check", list(schema = schema$document, table = whole_path(table))))
}
