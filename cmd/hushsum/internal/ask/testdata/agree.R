# For TestR: what the R package reads and asks is what R says of the same rows. It takes a folder
# with the installed package and the test's files, and the program.
arguments <- commandArgs(TRUE)
dir <- arguments[1]
library(hushsum, lib.loc = file.path(dir, "lib"))
library(survival)
rows <- with(lung, data.frame(
  time = ceiling(time / 30.4375), status = ifelse(status == 2, "dead", "lost"),
  arm = c("m", "f")[sex], number = sex, flat = 50
))
job <- file.path(dir, "job.toml")
ask <- function(...) hushsum_query(job, rows = rows, program = arguments[2], ...)

# Without noise.
exact <- ask()
curve <- exact[exact$name == "curve", ]
fit <- survfit(Surv(time, status == "dead") ~ 1, data = rows)
want <- summary(fit, times = as.numeric(curve$label), extend = TRUE)$surv
test <- survdiff(Surv(time, status == "dead") ~ arm, data = rows)
model <- exact[exact$name == "model", ]
line <- coef(lm(time ~ number, data = rows))
stopifnot(
  nrow(curve) == 34, max(abs(curve$value - want)) < 1e-9, curve$low == curve$value,
  curve$grid == 0, curve$population_low <= curve$value, curve$value <= curve$population_high,
  abs(attr(exact, "tests")$test[["chi_square"]] - test$chisq) < 1e-6,
  exact$label[exact$name == "test"] == c("m", "f"),
  model$label == c("intercept", "number"), model$low <= line, line <= model$high,
  model$standard_error > 0, is.na(exact$epsilon)
)

# With noise: what cannot be known is NA, and says why.
noisy <- ask(set = c("privacy.unit=record", "privacy.records=228", "privacy.epsilon=2",
  "privacy.noise=discrete-gaussian"))
slope <- noisy[noisy$name == "flat", ][2, ]
stopifnot(
  is.na(slope$value), grepl("noise hides", slope$unknown), slope$low == -Inf, slope$high == Inf,
  is.na(noisy$value) == !is.na(noisy$unknown), noisy$low <= noisy$high,
  noisy$epsilon > 0, noisy$epsilon <= 2
)

# JSON and CSV.
json <- read.hushsum(file.path(dir, "answers.json"))
csv <- read.hushsum(file.path(dir, "answers.csv"))
same <- c("name", "kind", "unit", "label", "by", "value", "low", "high")
stopifnot(
  identical(as.list(json)[same], as.list(csv)[same]), is.na(json$unknown) == is.na(csv$unknown),
  abs(json$epsilon - csv$epsilon) < 1e-4, sum(json$kind == "crosstab") == 4
)
refused <- function(call, why) {
  said <- tryCatch(call, error = conditionMessage)
  stopifnot(is.character(said), grepl(why, said))
}
refused(read.hushsum(text = "a,b\n1,2\n"), "no column name")
refused(ask(set = "privacy.epsilon=none"), "privacy.epsilon")
refused(hushsum_query(job), "not both")
refused(hushsum_query(job, rows = rows, program = "no-such-program"), "PATH")

# Figures.
pdf(file.path(dir, "figures.pdf"))
drawn <- plot(noisy)
plot(exact, population = TRUE)
plot(noisy, "model")
plot(json, "table")
invisible(dev.off())
stopifnot(drawn$name == "curve", file.size(file.path(dir, "figures.pdf")) > 4000)
