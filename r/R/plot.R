# plot.hushsum draws one answer: a survival curve as steps with its band, all else as points with
# their intervals.
plot.hushsum <- function(x, name = NULL, population = FALSE, col = "#1f5fa8", ...) {
  if (is.null(name)) {
    curves <- x$name[x$kind == "survival"]
    name <- c(curves, x$name)[1]
  }
  one <- x[x$name == name, ]
  if (nrow(one) == 0) stop("there is no answer ", name, " with numbers", call. = FALSE)
  if (one$kind[1] == "survival") {
    draw_curve(one, population, col, ...)
  } else {
    draw_intervals(one, col, ...)
  }
  invisible(one)
}

draw_curve <- function(one, population, col, xlab = "time", ylab = "share without the event",
                       main = one$name[1], ...) {
  at <- as.numeric(one$label)
  known <- cumsum(is.na(one$value)) == 0 # up to the first that cannot be known
  from <- min(0, at[1])
  edge <- function(y) c(1, y[known])
  time <- c(from, at[known])
  low <- edge(if (population) one$population_low else one$low)
  high <- edge(if (population) one$population_high else one$high)
  plot(c(from, max(at)), c(0, 1), type = "n", xlab = xlab, ylab = ylab, main = main, ...)
  twice <- rep(time, each = 2)[-1]
  stepped <- function(y) rep(y, each = 2)[-2 * length(y)]
  polygon(c(twice, rev(twice)), c(stepped(low), rev(stepped(high))),
    col = adjustcolor(col, alpha.f = 0.2), border = NA)
  lines(time, edge(one$value), type = "s", col = col, lwd = 2)
}

draw_intervals <- function(one, col, xlab = one$unit[1], ylab = "", main = one$name[1], ...) {
  ends <- range(one$value, one$low, one$high, finite = TRUE)
  row <- rev(seq_len(nrow(one)))
  plot(ends, c(0.5, nrow(one) + 0.5), type = "n", yaxt = "n", xlab = xlab, ylab = ylab,
    main = main, ...)
  label <- ifelse(is.na(one$label), one$name, one$label)
  label <- ifelse(is.na(one$by), label, paste(label, one$by, sep = ", "))
  axis(2, at = row, labels = label, las = 1)
  known <- !is.na(one$value)
  segments(pmax(one$low, ends[1])[known], row[known], pmin(one$high, ends[2])[known], row[known],
    col = col, lwd = 2)
  points(one$value[known], row[known], pch = 19, col = col)
}
