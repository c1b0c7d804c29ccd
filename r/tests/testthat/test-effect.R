test_that("an effect is near the truth and its methods agree", {
  skip_without_python()
  vault <- open_made_up()
  effect <- dp_estimate(vault, dp_estimator("regression_adjustment", covariates = "age"), epsilon = 10)
  row <- tidy(effect)
  expect_s3_class(row, "tbl_df")
  expect_named(row, c(
    "term", "outcome", "estimate", "std.error", "sampling.sd", "privacy.sd", "p.value", "conf.low", "conf.high"
  ))
  expect_lt(abs(row$estimate - 1), 0.4)
  expect_equal(coef(effect), c("drug vs usual care" = row$estimate))
  expect_equal(unname(confint(effect)[1, ]), c(row$conf.low, row$conf.high))
  expect_equal(colnames(confint(effect, level = 0.9)), c("5 %", "95 %"))
  narrow <- tidy(effect, conf.level = 0.5)
  expect_lt(narrow$conf.high - narrow$conf.low, row$conf.high - row$conf.low)
  expect_equal(row$std.error, sqrt(row$sampling.sd^2 + row$privacy.sd^2))
  expect_false("conf.low" %in% names(tidy(effect, conf.int = FALSE)))
  about <- glance(effect)
  expect_equal(about$nobs, 4000L)
  expect_equal(about$epsilon, 10)
  expect_equal(about$as.of, "2026-06-30")
})

test_that("the same question again costs nothing, and the ledger shows what was spent", {
  skip_without_python()
  vault <- open_made_up()
  first <- dp_estimate(vault, epsilon = 1)
  again <- dp_estimate(vault, epsilon = 1)
  expect_identical(coef(first), coef(again))
  ledger <- dp_ledger_show(vault)
  expect_equal(tidy(ledger)$epsilon, 1)
  expect_equal(glance(ledger)$left, 49)
  expect_output(print(ledger), "epsilon 1 of 50 spent, 49 left")
})

test_that("a price beyond the budget is refused and spends nothing", {
  skip_without_python()
  vault <- open_made_up(epsilon = 1)
  expect_error(dp_estimate(vault, epsilon = 2), class = "dpcausal_budget_exceeded_error")
  expect_equal(glance(dp_ledger_show(vault))$spent, 0)
})

test_that("an effect without an interval says why", {
  skip_without_python()
  vault <- open_made_up()
  effect <- dp_estimate(vault, dp_estimator("difference_in_means", with_interval = FALSE), epsilon = 1)
  expect_true(is.na(tidy(effect)$conf.low))
  expect_equal(glance(effect)$no.interval, "the sampling error was not asked for")
  expect_error(confint(effect), "the sampling error was not asked for", class = "dpcausal_refused_error")
  expect_output(print(effect), "none: the sampling error was not asked for")
})

test_that("an effect can be saved, and printed without Python", {
  skip_without_python()
  effect <- dp_estimate(open_made_up(), epsilon = 1)
  file <- tempfile()
  saveRDS(effect, file)
  dp_stop()
  read <- readRDS(file)
  expect_output(print(read), "Effect of drug vs usual care on score")
  expect_output(print(summary(read)), "arms are comparable without adjustment")
  expect_null(dpcausal:::the$process)
  expect_equal(tidy(read), tidy(effect))
})

test_that("contrasts of several arms are rows of their own", {
  skip_without_python()
  data <- data.frame(arm = rep(c("none", "low", "high"), 4000), score = rep(c(3, 4, 6), 4000))
  schema <- dp_schema(dp_treatment("arm", c("none", "low", "high"), compare = "high"), dp_real("score", 0, 10))
  rows <- tidy(dp_estimate(open_made_up(schema, data), "arm_contrasts", epsilon = 10))
  expect_gte(nrow(rows), 3)
  expect_equal(sort(round(rows$estimate[-1])), c(1, 3))
})

test_that("measures of a binary outcome are on their own scales", {
  skip_without_python()
  schema <- dp_schema(dp_treatment("treat"), dp_binary("died"))
  measures <- dp_measures(dp_estimate(open_made_up(schema), epsilon = 10))
  expect_equal(measures$measure, c("risk ratio", "relative lift", "odds ratio", "number needed to treat"))
  expect_lt(abs(measures$estimate[1] - 0.67), 0.15)
  expect_false("odds ratio" %in% dp_measures(dp_estimate(open_made_up(), epsilon = 10))$measure)
})

test_that("figures are drawn", {
  skip_without_python()
  skip_if_not_installed("ggplot2")
  vault <- open_made_up()
  plan <- dp_plan(made_up_schema(), n = 4000, epsilon = 1, outcome_sd = 1)
  balance <- dp_balance(vault, c("age", "sex"), epsilon = 5, weighted_by = "age")
  for (object in list(dp_estimate(vault, epsilon = 1), plan, balance)) {
    built <- ggplot2::ggplot_build(ggplot2::autoplot(object))
    expect_gt(sum(vapply(built$data, nrow, 0L)), 0)
  }
})

test_that("overlap has a row for each range of the score", {
  skip_without_python()
  rows <- tidy(dp_overlap(open_made_up(), "age", epsilon = 10))
  expect_match(rows$bin, "score")
  expect_lt(abs(sum(rows$control + rows$treated) - 4000), 100)
})

test_that("a new version of the data shares the budget", {
  skip_without_python()
  vault <- open_made_up()
  dp_estimate(vault, epsilon = 1)
  expect_error(
    dp_vault(made_up(5000), made_up_schema(), ledger = vault, as_of = "2026-09-30"), class = "dpcausal_ledger_error"
  )
  dp_ledger_add_version(vault, "2026-09-30")
  newer <- dp_vault(made_up(5000), made_up_schema(), ledger = vault, as_of = "2026-09-30")
  dp_estimate(newer, epsilon = 1)
  expect_equal(glance(dp_ledger_show(newer))$spent, 2)
})

test_that("an effect survives its file, and a file that holds none is refused without its text", {
  skip_without_python()
  effect <- dp_estimate(open_made_up(), epsilon = 1)
  file <- tempfile(fileext = ".json")
  dp_effect_write(effect, file)
  read <- dp_effect_read(file)
  expect_equal(tidy(read), tidy(effect))
  expect_equal(summary(read), summary(effect))
  expect_equal(nrow(dp_sites(read)), 0)
  writeLines("{\"secret\": 1}", file)
  error <- expect_error(dp_effect_read(file), "an effect that dpcausal wrote", class = "dpcausal_study_error")
  expect_no_match(conditionMessage(error), "secret")
})

test_that("a pooled effect shows its sites", {
  skip_without_python()
  files <- file.path(tempdir(), c("north.json", "south.json", "pooled.json"))
  for (file in files[1:2]) {
    dp_effect_write(dp_estimate(open_made_up(), epsilon = 1), file)
  }
  code <- c(
    "import pathlib, sys, dpcausal",
    "*places, out = map(pathlib.Path, sys.argv[1:])",
    "effects = {each.stem: dpcausal.Effect.from_json(each.read_text(encoding='utf-8')) for each in places}",
    "out.write_text(dpcausal.pool(effects).to_json(), encoding='utf-8')"
  )
  processx::run(dp_python()$executable, c("-c", paste(code, collapse = "\n"), files))
  effect <- dp_effect_read(files[3])
  sites <- dp_sites(effect)
  expect_equal(sites$site, c("north", "south"))
  expect_equal(sites$status, c("answered", "answered"))
  expect_equal(sum(sites$nobs), nobs(effect))
  expect_equal(sum(sites$weight), 1)
  row <- tidy(effect)
  expect_equal(row$std.error, sqrt(row$sampling.sd^2 + row$between.sd^2 + row$privacy.sd^2))
})

test_that("plot draws what autoplot draws, and nobs is the public number", {
  skip_without_python()
  skip_if_not_installed("ggplot2")
  effect <- dp_estimate(open_made_up(), epsilon = 1)
  expect_equal(nobs(effect), 4000L)
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  plot(effect)
  grDevices::dev.off()
  expect_gt(file.size(file), 2000)
})

test_that("a long warning is wrapped to the width of the console", {
  skip_without_python()
  data <- data.frame(treat = rep("neither", 1000), score = 5)
  vault <- open_made_up(dp_schema(dp_treatment("treat"), dp_real("score", 0, 10)), data)
  printed <- capture.output(print(dp_estimate(vault, epsilon = 1)))
  expect_match(printed, "  WARNING   ", fixed = TRUE, all = FALSE)
  expect_true(all(nchar(printed) <= getOption("width")))
})

test_that("a formula of moments and of sums of one's own is an estimator", {
  skip_without_python()
  data <- made_up()
  slope <- dp_estimator(
    "formula_estimator",
    estimand = "mean difference in score for one more year", contrast = c("an age", "1 year more"),
    sums = c(older = "where(age >= 54, 1)"), cells = "treat",
    definitions = c(size = "total(n)"), formula = "covariance(age, score)[0] / variance(age)[0] + 0 * total(older) / size"
  )
  effect <- dp_estimate(open_made_up(data = data), slope, epsilon = 50)
  expected <- coef(stats::lm(score ~ age, data[data$treat == 0, ]))[["age"]]
  expect_lt(abs(unname(coef(effect)) - expected), 0.01)
  expect_equal(names(coef(effect)), "1 year more vs an age")
})
