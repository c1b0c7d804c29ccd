decoded <- function(column) {
  if (column$kind == "double") readBin(column$content, "double", 100L, endian = "little") else
    readBin(column$content, "integer", 100L, endian = "little")
}

test_that("only declared columns are encoded", {
  columns <- dpcausal:::encode_columns(data.frame(a = 1, b = 2, c = 3), c("c", "a", "absent"))
  expect_equal(vapply(columns, function(column) column$name, ""), c("c", "a"))
})

test_that("columns keep their values and missing cells", {
  encode <- function(values) dpcausal:::encode_column("x", values)
  expect_equal(decoded(encode(c(1.5, NA, -2))), c(1.5, NA, -2))
  expect_equal(decoded(encode(c(1L, NA))), c(1L, NA))
  expect_equal(decoded(encode(c(TRUE, NA, FALSE))), c(1L, NA, 0L))
  text <- encode(c("b", NA, "a", "b"))
  expect_equal(decoded(text), c(0L, NA, 1L, 0L))
  expect_equal(unlist(text$levels), c("b", "a"))
  expect_equal(unlist(encode(factor(c("x", "y")))$levels), c("x", "y"))
})

test_that("text that is not UTF-8 raises no error", {
  expect_equal(dpcausal:::encode_column("x", rawToChar(as.raw(c(0x61, 0xe9))))$levels, list("a<e9>"))
})

test_that("a column of another type is refused by its type, without a value", {
  for (column in list(list("secret"), structure(7.5, class = "integer64"), matrix("secret"))) {
    frame <- data.frame(row = 1)
    frame$x <- column
    error <- expect_error(dpcausal:::encode_columns(frame, "x"), class = "dpcausal_table_error")
    expect_match(conditionMessage(error), "column 'x'")
    expect_no_match(conditionMessage(error), "secret|7.5")
  }
})

test_that("every type of column is read by the vault as declared", {
  skip_without_python()
  n <- 20000
  days <- as.Date("2020-01-01") + rep(c(10, 30), n / 2)
  arms <- list(
    rep(c(0, 1), n / 2), rep(0:1, n / 2), rep(c(FALSE, TRUE), n / 2), rep(c("no", "yes"), n / 2),
    factor(rep(c("no", "yes"), n / 2))
  )
  outcome <- dp_real("day", 0, 100, since = as.Date("2020-01-01"))
  outcomes <- list(days, as.POSIXct(paste(days, "23:30:00"), tz = "America/New_York"), format(days))
  for (place in seq_along(arms)) {
    data <- data.frame(treat = arms[[place]], day = outcomes[[(place - 1) %% 3 + 1]])
    vault <- open_made_up(dp_schema(dp_treatment("treat"), outcome), data)
    expect_equal(unname(coef(dp_estimate(vault, epsilon = 20))), 20, tolerance = 0.02)
    dp_close(vault)
  }
})

test_that("missing cells count as declared", {
  skip_without_python()
  data <- data.frame(treat = rep(0:1, 5000), score = rep(c(2, NA), 5000))
  schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10, missing = 9))
  vault <- open_made_up(schema, data)
  expect_equal(unname(coef(dp_estimate(vault, epsilon = 20))), 7, tolerance = 0.05)
})

test_that("files are looked for in R's folder, also after it changed, and a table may be a file", {
  skip_without_python()
  dp_python()
  folder <- tempfile()
  dir.create(folder)
  old <- setwd(folder)
  on.exit(setwd(old))
  dp_ledger_create("ledger.db", epsilon = 20, as_of = "2026-06-30")
  expect_true(file.exists(file.path(folder, "ledger.db")))
  utils::write.csv(made_up(), "table.csv", row.names = FALSE)
  vault <- dp_vault("table.csv", made_up_schema(), ledger = "ledger.db", as_of = "2026-06-30")
  expect_equal(vault$n, 4000)
})
