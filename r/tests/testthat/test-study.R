study_of <- function(...) {
  dp_study(
    name = "made-up", question = "Does the drug raise the score?", schema = made_up_schema(),
    eligibility = "made up", time_zero = "admission", bounds = c(by = "nobody", on = "2026-01-15", source = "made up"),
    ...
  )
}

test_that("a study is planned, run and reported", {
  skip_without_python()
  study <- study_of(
    estimator = dp_estimator("inverse_weighting", covariates = c("age", "sex")), epsilon = 10,
    confounders = c(age = "older people do worse", sex = "it may matter"), expected = c(outcome_sd = 1),
    requires = list(balance = list(epsilon = 10, covariates = c("age", "sex")))
  )
  plan <- dp_plan(study, n = 4000)
  expect_equal(glance(plan)$total.epsilon, 20)
  expect_true("difference in means" %in% tidy(plan)$estimator)
  vault <- open_made_up()
  effect <- dp_run(study, vault)
  expect_lt(abs(coef(effect) - 1), 0.5)
  expect_equal(tidy(effect$diagnoses$balance)$covariate[1], "age")
  page <- tempfile(fileext = ".html")
  expect_message(verdict <- dp_report(effect, page, study, ledger = vault), "Wrote")
  html <- paste(readLines(page, encoding = "UTF-8"), collapse = "\n")
  expect_match(html, "older people do worse", fixed = TRUE)
  expect_match(html, "alance", fixed = TRUE)
  expect_true(nzchar(verdict))
})

test_that("a required diagnostic that fails stops the study before its effect is paid for", {
  skip_without_python()
  study <- study_of(epsilon = 10, requires = list(balance = list(epsilon = 5, covariates = "age")))
  vault <- open_made_up()
  error <- expect_error(dp_run(study, vault), "its price was not spent", class = "dpcausal_diagnostic_failed")
  expect_equal(error$diagnoses$balance$verdict, "fails")
  expect_equal(glance(dp_ledger_show(vault))$spent, 5)
})

test_that("a study survives its file", {
  skip_without_python()
  study <- study_of(epsilon = 1, estimator = dp_estimator("stratification", by = list("sex", dp_cut("age", 50))))
  file <- tempfile(fileext = ".toml")
  dp_study_write(study, file)
  read <- dp_study_read(file)
  expect_equal(read$toml, study$toml)
  expect_equal(read$schema, study$schema)
})

test_that("the column of entry is a part of the schema", {
  skip_without_python()
  weeks <- list(dp_category("week", c("1", "2")))
  schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 100), weeks, entry = "week")
  expect_equal(schema$document$entry, "week")
  expect_error(
    dp_schema(dp_treatment("treat"), dp_real("score", 0, 100), entry = "score"), "never changes",
    class = "dpcausal_schema_error"
  )
})

test_that("a plan of a schema says what a target precision needs", {
  skip_without_python()
  schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 100))
  plan <- glance(dp_plan(schema, n = 1000, epsilon = 0.2, outcome_sd = 15, width = 2.5))
  expect_equal(plan$epsilon.needed, 0.72)
  expect_equal(plan$n.needed, 2740)
})
