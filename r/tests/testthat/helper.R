# Tests run the real Python package. DPCAUSAL_REQUIRED, which checks.r_package sets, forbids to skip them.
skip_without_python <- function() {
  if (!nzchar(Sys.getenv("DPCAUSAL_REQUIRED"))) {
    skip_if_not(dp_available(), "no Python with dpcausal")
  }
}

made_up <- function(n = 4000) {
  set.seed(1)
  age <- runif(n, 18, 90)
  treat <- rbinom(n, 1, 0.3 + 0.4 * (age - 18) / 72)
  data.frame(
    treat = treat, age = age, sex = factor(sample(c("female", "male"), n, TRUE)),
    score = rnorm(n, 5 + treat - (age - 54) / 72), died = rbinom(n, 1, 0.3 - 0.1 * treat)
  )
}

made_up_schema <- function(...) {
  dp_schema(
    dp_treatment("treat", labels = c("usual care", "drug")), dp_real("score", 0, 10),
    list(dp_real("age", 18, 90), dp_category("sex", c("female", "male"))), ...
  )
}

open_made_up <- function(schema = made_up_schema(), data = made_up(), epsilon = 50) {
  ledger <- dp_ledger_create(tempfile(fileext = ".db"), epsilon = epsilon, as_of = "2026-06-30")
  dp_vault(data, schema, ledger = ledger, as_of = "2026-06-30")
}
