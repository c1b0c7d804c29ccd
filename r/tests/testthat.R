library(testthat)
library(dpcausal)

test_check("dpcausal")
