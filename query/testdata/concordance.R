# The C-index of flchain by age, for TestRConcordance: of the rows as they are, and of ten bins of
# 600 days by ten of six years; and the rows.
suppressPackageStartupMessages(library(survival))
d <- subset(flchain, futime > 0)
cat(sprintf("row,%d,%d,%d\n", d$futime, d$death, d$age), sep = "")
c_of <- function(time, age) concordance(Surv(time, d$death) ~ age, reverse = TRUE)$concordance
cat(sprintf("exact,%.17g\n", c_of(d$futime, d$age)))
cat(sprintf("rounded,%.17g\n", c_of(floor(d$futime / 600) + 1, floor((d$age - 50) / 6))))
