test_that("an error says what is wrong and what to do", {
  skip_without_python()
  error <- expect_error(dp_schema(dp_treatment("t"), dp_real("y", 10, 0)), class = "dpcausal_schema_error")
  expect_match(conditionMessage(error), "wrong way round.*\\.\nHint: ")
  expect_true(all(nzchar(c(error$problem, error$hint))))
  expect_error(dp_schema("t", dp_real("y", 0, 1)), "dp_treatment", class = "dpcausal_argument_error")
})

test_that("an absent column is named, and no value of the table", {
  skip_without_python()
  data <- data.frame(treat = c("secret", "cell"), other = 1:2)
  error <- expect_error(open_made_up(data = data), class = "dpcausal_table_error")
  expect_match(conditionMessage(error), "score")
  expect_no_match(conditionMessage(error), "secret|cell")
})

test_that("an error of another library is reported by its type only", {
  skip_without_python()
  vault <- open_made_up()
  error <- expect_error(dp_estimate(vault, epsilon = list("secret")), class = "dpcausal_error")
  expect_no_match(conditionMessage(error), "Traceback")
  error <- expect_error(dpcausal:::ask("secret", list()), class = "dpcausal_unexpected_error")
  expect_match(conditionMessage(error), "KeyError; its message is withheld")
  expect_no_match(conditionMessage(error), "secret")
})

test_that("a parameter that is a formula is refused with a hint", {
  expect_error(
    dpcausal:::as_estimator(dp_estimator("doubly_robust", covariates = ~age)), "class formula",
    class = "dpcausal_study_error"
  )
})

test_that("a closed vault, and one of an earlier process, are refused", {
  skip_without_python()
  vault <- open_made_up()
  dp_close(vault)
  expect_error(dp_estimate(vault, epsilon = 1), "a vault that is open", class = "dpcausal_refused_error")
  other <- open_made_up()
  dp_stop()
  expect_error(dp_estimate(other, epsilon = 1), "a vault that is open", class = "dpcausal_refused_error")
})

test_that("a Python without dpcausal is named with a hint", {
  skip_on_os("windows")
  dp_stop()
  fake <- tempfile()
  writeLines(c("#!/bin/sh", "exit 1"), fake)
  Sys.chmod(fake, "755")
  old <- options(dpcausal.python = fake)
  on.exit(options(old))
  expect_error(dp_python(), "which cannot import it", class = "dpcausal_python_error")
  expect_false(dp_available())
  options(dpcausal.python = file.path(tempdir(), "absent"))
  expect_error(dp_python(), "which does not start", class = "dpcausal_python_error")
})

test_that("another version of the Python package is refused", {
  expect_error(dpcausal:::check_version("99.1.0"), "version 99.1.0", class = "dpcausal_python_error")
  expect_silent(dpcausal:::check_version(paste0(sub("^(\\d+\\.\\d+).*", "\\1", packageVersion("dpcausal")), ".9")))
})

test_that("library folders that R adds do not reach Python", {
  added <- paste(file.path(R.home(), "lib"), "/usr/lib/x86_64-linux-gnu", "/opt/mine", sep = ":")
  expect_equal(dpcausal:::own_libraries(added), "/opt/mine")
})

test_that("a reply to an interrupted request is dropped", {
  skip_without_python()
  dp_python()
  dpcausal:::send(dpcausal:::request_line("hello", list(), NULL))
  expect_equal(dpcausal:::ask("schema", list(document = made_up_schema()$document))$document$treatment$name, "treat")
})

test_that("dates as bounds and covariates without list() are refused with the way to write them", {
  skip_without_python()
  expect_error(dp_real("day", as.Date("2024-01-01"), as.Date("2026-01-01")), "since =", class = "dpcausal_schema_error")
  expect_error(
    dp_schema(dp_treatment("t"), dp_real("y", 0, 1), c(dp_real("age", 18, 100), dp_binary("smokes"))), "list\\(",
    class = "dpcausal_argument_error"
  )
})
