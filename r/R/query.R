# hushsum_query asks the queries of a job about rows on this machine, by the program.
hushsum_query <- function(job, rows = NULL, folder = NULL, sql = NULL, set = character(),
                          program = Sys.getenv("HUSHSUM", "hushsum")) {
  if (is.null(rows) == is.null(folder)) {
    stop("give rows, a data frame or a source, or folder, and not both", call. = FALSE)
  }
  answered <- tempfile("hushsum")
  said <- tempfile("hushsum")
  own <- tempfile("hushsum", fileext = ".csv")
  on.exit(unlink(c(answered, said, own)))
  if (is.data.frame(rows)) { # a file of this session, and no longer than the program runs
    write.csv(rows, own, row.names = FALSE, na = "", fileEncoding = "UTF-8")
    rows <- own
  }
  program <- path.expand(program)
  if (!nzchar(Sys.which(program))) {
    stop("there is no program ", program, "; put hushsum on PATH, or its path into program = ",
      "or the variable HUSHSUM", call. = FALSE)
  }
  arguments <- c("query", job, "--json", with_flag("--rows", rows), with_flag("--folder", folder),
    with_flag("--sql", sql), as.vector(rbind(rep("--set", length(set)), set)))
  code <- system2(program, shQuote(arguments), stdout = answered, stderr = said)
  told <- paste(readLines(said, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  if (code != 0) stop(told, call. = FALSE)
  if (nzchar(told)) message(told)
  read.hushsum(answered)
}

with_flag <- function(flag, value) if (is.null(value)) NULL else c(flag, value)
