// Package query asks declared questions about the rows of many parties: how many there are, sums,
// means and variances of columns, covariances and correlations, histograms, cross tables and
// quantiles, survival curves, log-rank tests, linear and logistic models and the most frequent
// words, all with one private sum; and Cox and Poisson models, with one in each of several rounds.
//
// A job with [[query]] tables (package job) is settled like any other. A [Schema] reads a party's
// rows and checks them before anything is sent; a [Plan] turns them into the party's vector,
// which the job's own sum takes, and turns the mean of all vectors into answers.
//
// # One vector
//
// Each query has its coordinates in the vector, and a row adds to them a part of L2 norm √share at
// most, share being the query's part of the budget. Shares add up to 1, so that a row adds norm 1
// to all queries together: the whole batch is one Gaussian mechanism of sensitivity 1, and costs
// what its job's privacy.epsilon says, however many queries there are. Where the unit is a party,
// its rows are bounded by parties.rows, and their sum is divided by that; where it is a record, the
// sum is not.
//
// # Answers
//
// The noise of a decoded sum is normal for all that is seen here, of a known deviation, to which
// the rounding of parties is added. Intervals hold the truth, of the rows of all parties, in 95 %
// of the answers: linear ones and means exactly (Fieller 1954), variances, covariances,
// correlations, curves and models to first order, quantiles by inverting a test at each end. If
// parties are missing, intervals are widened by the most that their rows could change. Values are
// then made consistent, which costs no privacy: no count is below 0, the cells of a table add up to
// its margins (the closest table without negative counts that has the same total), quantiles
// ascend.
//
// Quantiles are read from a binary tree of counts (Hay et al. 2010, "Boosting the Accuracy of
// Differentially Private Histograms Through Consistency"): each row counts once on each level, and
// least squares joins the levels.
//
// Queries that count rows by the same columns are answered together, where that has less error: the
// vector has weighted counts of the cells that they tell apart, and least squares makes all answers
// of these (Li et al. 2015, the matrix mechanism). See [job.Job.Together].
//
// Logistic models maximise the likelihood of the rows, one by one: the equations sum a smooth
// function of a row, which moments of Chebyshev polynomials give whatever the coefficients are
// (Huggins et al. 2017 have them without privacy).
//
// Cox and Poisson models are fitted in rounds: [Plan.Vector] takes the model that a round begins
// with, and [Plan.Next] makes the next of its sum. All records take part in all rounds, and the
// batch is as many Gaussian mechanisms. What a row may add is bounded by its columns and by public
// coefficients, never by its outcome, so that the bound does not bias the estimate.
//
// Frequent words of a vocabulary that nobody has listed are read from the same sum: each adds a
// code word of norm 1 to one of many buckets, from which it is decoded once noise is on it. A
// word comes out only if it stands so far above the noise that with probability 1 − δ/2 no word
// that fewer than two units have does, in the noise alone. Parties derive the buckets and codes
// from the names of the job and of the query.
package query
