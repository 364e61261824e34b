# Rows of three data sets of R's package survival, and what coxph and glm say of them, for
# TestRModels: a line for each row (row,set,time,event,age,arm,stratum,count, and two numbers that
# follow from the place of the row) and for each coefficient
# (truth,set,model,number,value,standard error).
library(survival)
options(digits = 17)
sets <- list(
  colon = with(na.omit(subset(colon, etype == 2)), data.frame(t = time, e = status == 1, age = age,
    arm = as.integer(rx == "Lev+5FU"), s = as.integer(extent > 2), n = pmin(nodes, 20))),
  rotterdam = with(rotterdam, data.frame(t = dtime, e = death == 1, age = age, arm = chemo,
    s = as.integer(size != "<=20"), n = pmin(nodes, 20))),
  flchain = with(subset(flchain, futime > 0), data.frame(t = futime, e = death == 1, age = age,
    arm = as.integer(sex == "M"), s = mgus, n = flc.grp)))
tell <- function(set, model, fit) {
  se <- sqrt(diag(vcov(fit)))
  cat(sprintf("truth,%s,%s,%d,%.17g,%.17g\n", set, model, seq_along(se) - 1L, coef(fit), se), sep = "")
}
for (name in names(sets)) {
  d <- sets[[name]]
  d$u <- as.integer((seq_len(nrow(d)) * 7) %% 11)
  d$v <- as.integer((seq_len(nrow(d)) * 5) %% 13)
  cat(sprintf("row,%s,%.17g,%d,%.17g,%d,%d,%d,%d,%d\n", name, d$t, as.integer(d$e), d$age,
    as.integer(d$arm), as.integer(d$s), as.integer(d$n), d$u, d$v), sep = "")
  tell(name, "cox", coxph(Surv(t, e) ~ age + arm, d))
  tell(name, "strata", coxph(Surv(t, e) ~ age + arm + strata(s), d))
  tell(name, "poisson", glm(n ~ age + arm, poisson, d))
  tell(name, "logistic", glm(e ~ t + age + n + u + v + arm, binomial, d))
}
