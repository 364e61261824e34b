# Rows of the data sets of R's package survival, and what R says of them, for TestR: a line for each
# row (set,time,months,event,group) and for each truth (truth,set,what,at,value).
library(survival)
options(digits = 17)
sets <- list(
  lung = with(lung, data.frame(t = time, e = status == 2, g = sex)),
  colon = with(subset(colon, etype == 2 & rx != "Lev"), data.frame(t = time, e = status == 1, g = 1 + (rx == "Lev+5FU"))),
  veteran = with(veteran, data.frame(t = time, e = status == 1, g = trt)),
  rotterdam = with(rotterdam, data.frame(t = dtime, e = death == 1, g = 1 + chemo)),
  flchain = with(subset(flchain, futime > 0), data.frame(t = futime, e = death == 1, g = as.integer(factor(sex)))))
for (name in names(sets)) {
  s <- sets[[name]]
  s$m <- ceiling(s$t / 30.4375) # months, of which each is a bin
  cat(sprintf("row,%s,%.17g,%d,%d,%d\n", name, s$t, as.integer(s$m), as.integer(s$e), as.integer(s$g)), sep = "")
  fit <- survfit(Surv(m, e) ~ 1, data = s)
  at <- sort(unique(s$m))
  cat(sprintf("truth,%s,months,%d,%.17g\n", name, as.integer(at), summary(fit, times = at)$surv), sep = "")
  days <- survfit(Surv(t, e) ~ 1, data = s)
  ends <- max(s$t) * (1:11) / 12
  cat(sprintf("truth,%s,days,%.17g,%.17g\n", name, ends, summary(days, times = ends)$surv), sep = "")
  test <- survdiff(Surv(m, e) ~ g, data = s)
  cat(sprintf("truth,%s,chi,0,%.17g\n", name, test$chisq))
  cat(sprintf("truth,%s,off,%d,%.17g\n", name, 1:2, test$obs - test$exp), sep = "")
  fine <- survdiff(Surv(t, e) ~ g, data = s)
  cat(sprintf("truth,%s,chidays,0,%.17g\n", name, fine$chisq))
  line <- lm(m ~ g, data = s)
  cat(sprintf("truth,%s,lm,%d,%.17g\n", name, 0:1, coef(line)), sep = "")
}
