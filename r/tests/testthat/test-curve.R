test_that("effects of subgroups and along a covariate are tidy", {
  skip_without_python()
  vault <- open_made_up()
  groups <- dp_curve(vault, dp_estimator("subgroup_effects", by = "sex"), epsilon = 10)
  expect_equal(tidy(groups)$group, c("sex=female", "sex=male"))
  curve <- dp_curve(vault, dp_estimator("r_learner", covariates = c("age", "sex")), epsilon = 10)
  found <- tidy(curve, at = data.frame(age = c(30, 60), sex = factor(c("male", "female"))))
  expect_equal(nrow(found), 2)
  expect_true(all(abs(found$estimate - 1) < 1.5))
  expect_output(print(curve), "effect", ignore.case = TRUE)
  expect_error(dp_curve(vault, "difference_in_means", epsilon = 1), "r_learner", class = "dpcausal_error")
})

test_that("an experiment is planned, run and tidy", {
  skip_without_python()
  file <- tempfile(fileext = ".toml")
  writeLines(c(
    "version = 1", "name = \"drug\"", "question = \"Does the drug help?\"", "epsilon = 10.0",
    "[treatment]", "name = \"treat\"", "arms = [0, 1]", "compare = 1",
    "[[metrics]]", "[metrics.column]", "kind = \"real\"", "name = \"score\"", "low = 0", "high = 10", "missing = 5",
    "[[metrics]]", "[metrics.column]", "kind = \"binary\"", "name = \"died\"", "values = [0, 1]", "missing = 0"
  ), file)
  experiment <- dp_experiment_read(file)
  plan <- tidy(dp_plan(experiment, n = 4000, typical = list(died = 0.25, score = c(2, 8))))
  expect_equal(plan$metric, c("score", "died"))
  expect_true(all(is.na(plan$difference)) && all(plan$detectable > 0))
  vault <- open_made_up(experiment$schema)
  found <- tidy(dp_experiment_run(experiment, vault))
  expect_lt(abs(found$difference[found$metric == "died"] + 0.1), 0.1)
  expect_error(dp_experiment_run(list(), vault), class = "dpcausal_error")
})

test_that("a file is inspected, marked as not private, and a policy may forbid it", {
  skip_without_python()
  folder <- tempfile()
  dir.create(folder)
  file <- file.path(folder, "visits.csv")
  write.csv(data.frame(treat = 0:1, score = c("5", "about 6")), file, row.names = FALSE)
  schema <- dp_schema(dp_treatment("treat"), dp_real("score", 0, 10))
  found <- dp_check(file, schema)
  expect_true(all(startsWith(found, "[not private")))
  expect_true(any(grepl("about 6", found, fixed = TRUE)))
  expect_error(dp_check(data.frame(), schema), class = "dpcausal_error")
})
