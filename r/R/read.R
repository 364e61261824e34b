# read.hushsum reads answers, JSON or CSV, as a data frame with a row for each number.
read.hushsum <- function(file, text = readLines(file, warn = FALSE, encoding = "UTF-8")) {
  text <- paste(text, collapse = "\n")
  if (grepl("^[[:space:]]*[[{]", text)) read_json(text) else read_csv(text)
}

read_json <- function(text) {
  answers <- fromJSON(text, simplifyVector = FALSE)
  if (!is.null(names(answers))) answers <- answers$answers # as the page has them
  tests <- list()
  rows <- list()
  for (a in answers) {
    rows[[length(rows) + 1]] <- rows_of(a)
    if (!is.null(a$test)) tests[[a$name]] <- unlist(a$test)
  }
  frame(do.call(rbind, rows), tests)
}

# rows_of returns the rows of an answer: one, one for each label, or one for each pair of labels.
rows_of <- function(a) {
  value <- a$value
  interval <- a$interval
  label <- by <- NA_character_
  if (a$kind == "crosstab") {
    value <- unlist(value, recursive = FALSE)
    interval <- unlist(interval, recursive = FALSE)
    label <- rep(unlist(a$labels[[1]]), each = length(a$labels[[2]]))
    by <- rep(unlist(a$labels[[2]]), times = length(a$labels[[1]]))
  } else if (!is.null(a$labels)) {
    label <- as.character(unlist(a$labels))
  } else {
    value <- list(value)
    interval <- list(interval)
  }
  n <- length(value)
  data.frame(
    name = rep(a$name, n), kind = rep(a$kind, n), unit = rep(a$unit, n),
    label = rep_len(label, n), by = rep_len(by, n),
    value = numbers(value, n, NA),
    low = numbers(lapply(interval, function(i) i[[1]]), n, -Inf),
    high = numbers(lapply(interval, function(i) i[[2]]), n, Inf),
    unknown = words(a$unknown, n),
    standard_error = numbers(a$standard_error, n, NA),
    population_low = numbers(lapply(a$population_interval, function(i) i[[1]]), n, NA),
    population_high = numbers(lapply(a$population_interval, function(i) i[[2]]), n, NA),
    grid = numbers(a$grid, n, NA),
    epsilon = rep(if (is.null(a$spends$epsilon)) NA_real_ else a$spends$epsilon, n),
    stringsAsFactors = FALSE
  )
}

# numbers returns those of a list, with null where it has none; all are null where there is no list.
numbers <- function(list, n, null) {
  if (length(list) == 0) return(rep(as.numeric(null), n))
  vapply(list, function(x) if (is.null(x)) as.numeric(null) else as.numeric(x), 0)
}

# words returns why numbers cannot be known, NA for those that are known.
words <- function(list, n) {
  if (length(list) == 0) return(rep(NA_character_, n))
  out <- as.character(unlist(list))
  ifelse(out == "", NA_character_, out)
}

read_csv <- function(text) {
  in_file <- read.csv(text = text, colClasses = "character", check.names = FALSE, encoding = "UTF-8")
  needed <- c("name", "kind", "unit", "label", "by", "value", "low", "high", "unknown",
    "spends")
  if (!all(needed %in% names(in_file))) {
    stop("neither the JSON of 'hushsum query --json' nor the CSV of a federation's page: ",
      "no column ", paste(setdiff(needed, names(in_file)), collapse = ", "), call. = FALSE)
  }
  given <- function(text, null) {
    out <- rep(as.numeric(null), length(text))
    out[text != ""] <- as.numeric(text[text != ""])
    out
  }
  blank <- function(text) ifelse(text == "", NA_character_, text)
  n <- nrow(in_file)
  value <- given(in_file$value, NA)
  epsilon <- rep("", n)
  said <- grepl("epsilon [0-9.]", in_file$spends)
  epsilon[said] <- sub("^.*?epsilon ([0-9.e+-]+).*$", "\\1", in_file$spends[said], perl = TRUE)
  frame(data.frame(
    name = in_file$name, kind = in_file$kind, unit = in_file$unit, label = blank(in_file$label),
    by = blank(in_file$by), value = value, low = given(in_file$low, -Inf),
    high = given(in_file$high, Inf),
    unknown = blank(in_file$unknown),
    standard_error = rep(NA_real_, n), population_low = rep(NA_real_, n),
    population_high = rep(NA_real_, n), grid = rep(NA_real_, n),
    epsilon = given(epsilon, NA), stringsAsFactors = FALSE
  ), list())
}

frame <- function(rows, tests) {
  attr(rows, "tests") <- tests
  class(rows) <- c("hushsum", "data.frame")
  rows
}
