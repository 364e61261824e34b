package job

// Column describes a column of the rows that parties bring to queries. Rows are each party's own:
// the job says what they must look like, and each party's program checks them.
type Column struct {
	// Names a column, as in the header of a party's rows. Values: 1 to 60 letters, digits, dots,
	// dashes and underscores. Required.
	Name string
	// Says what its values are: numbers, whole numbers, one of some words, or any word or text.
	// Values: number, whole, category, text. Required.
	Type string
	// Names the unit of its numbers, such as years. Values: up to 60 characters.
	Unit string
	// Bounds the numbers of a column: the least and the greatest. Default: none; required for
	// numbers.
	Range []float64
	// Says how a number outside the range, or a text longer than longest, is treated: it counts as
	// the nearest inside, or as its first characters, or it does not count. Values: clip, drop.
	// Default: "clip".
	Outside string
	// Lists the words of a category. Values: 1 to 200 characters each. Default: none; required for
	// categories.
	Categories []string
	// Bounds the length of a text, in UTF-8. Texts are compared in lower case, with one space for all
	// white space between words and none around them. Range: 1 to 64 (bytes). Default: 16 for texts.
	Longest int `json:",omitempty"`
	// Lists what stands for a missing value, in addition to an empty one, such as a question mark.
	// Values: 1 to 200 characters each. Default: none.
	Blank []string
	// Says how a row with a missing or unknown value here is treated: the party's program refuses its
	// rows, queries of the column leave the row out, or it counts as a category of its own. Values:
	// refuse, drop, category. Default: "refuse".
	Missing string
}

// Query asks a question of the rows of all parties together.
type Query struct {
	// Names a query, and its answer. Values: 1 to 60 letters, digits, dots, dashes and underscores.
	// Required.
	Name string
	// Says what is asked: the number of rows; the sum, the mean, the variance or quantiles of a
	// column's numbers; the covariance or the correlation of two columns; how many rows are in each
	// bin of a column, or of two; how many rows have not had an event yet, over time, and whether
	// groups differ in that; how well scores predict an event, or how soon it comes; a linear model
	// of a column; a logistic model of an event; Cox's model of the time until an event; a Poisson
	// model of a column of counts; or which texts are the most frequent, and how many rows have each.
	// Values: count, sum, mean, variance, covariance, correlation, histogram, crosstab, quantiles,
	// survival, logrank, evaluation, cindex, linear, logistic, cox, poisson, heavy. Required.
	Kind string
	// Names the column that the query is about. Values: 1 to 60 letters, digits, dots, dashes and
	// underscores. Default: none; required except for a count and a logistic model.
	Column string
	// Names the other column of a crosstab, a covariance or a correlation, the scores of a C-index,
	// or the groups of a log-rank test or an evaluation, or the strata of Cox's model. Values: 1 to
	// 60 letters, digits, dots, dashes and underscores. Default: none; required for these, except for
	// an evaluation of all rows together and Cox's model.
	By string
	// Lists the columns that a model predicts from: columns of numbers, and except for a linear model
	// also of words. Values: 1 to 200 characters each. Default: none; required for a model.
	On []string
	// Says which rows have had the event, in the form of where. In a survival curve, a log-rank test,
	// a C-index and Cox's model it came at the time in the column, which for other rows is how long
	// they are known about; a logistic model and scores predict it. Values: up to 500 characters.
	// Default: none; required for survival curves, log-rank tests, evaluations, C-indices, Cox and
	// logistic models.
	Event string
	// Limits the query to rows for which it holds: conditions such as age >= 65, joined by and.
	// Values: up to 500 characters. Default: none: all rows.
	Where string
	// Cuts the range of a column of numbers into this many parts of equal width. Range: 2 to 65,536
	// (bins). Default: 10, or one for each of up to 20 whole numbers; for curves over time 36, or one
	// for each of up to 60; for an evaluation 32; for quantiles 256, and a power of two.
	Bins int
	// Cuts the range of the other column. Range: 2 to 65,536 (bins). Default: as bins.
	ByBins int
	// Lists the quantiles that are asked for, or the scores from which on an evaluation's rows count
	// as predicted to have the event, in ascending order. Range: above 0, below 1. Default: 0.25, 0.5
	// and 0.75; for an evaluation 0.5.
	At []float64
	// Asks for at most this many of the most frequent texts: fewer come out where noise hides the
	// others. Range: 1 to 1000 (texts). Default: 20 for heavy.
	Top int `json:",omitempty"`
	// Gives the query this share of the budget: its noise is 1/√share times what it would be alone.
	// Range: above 0, to 1 (share). Default: equal parts of what is left.
	Share float64
}
