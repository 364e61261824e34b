package job

// Column describes a column of the rows that parties bring to queries. Rows are each party's own:
// the job says what they must look like, and each party's program checks them.
type Column struct {
	// Names a column, as the head of a party's rows has it. Values: 1 to 60 letters, digits, dots,
	// dashes and underscores. Required.
	Name string
	// Says what its values are: numbers, whole numbers, one of some words, or any word or text.
	// Values: number, whole, category, text. Required.
	Type string
	// Says what a number counts, as years. Values: up to 60 characters.
	Unit string
	// Bounds the numbers of a column: the least and the most. Default: none; required of numbers.
	Range []float64
	// Says what becomes of a number outside of the range, or of a text that is longer than longest:
	// it counts as the nearest inside, or as its first characters, or it does not count. Values:
	// clip, drop. Default: "clip".
	Outside string
	// Lists the words of a category. Values: 1 to 200 characters each. Default: none; required of
	// categories.
	Categories []string
	// Bounds the length of a text, in UTF-8. Texts are compared in small letters, with one space for
	// all white space between words and none around them. Range: 1 to 64 (bytes). Default: 16 of a
	// text.
	Longest int `json:",omitempty"`
	// Lists what stands for a missing value, next to nothing at all, such as a question mark. Values:
	// 1 to 200 characters each. Default: none.
	Blank []string
	// Says what becomes of a row without a value here, or with an unknown one: the party's program
	// refuses its rows, queries of the column leave the row out, or it counts as a category of its
	// own. Values: refuse, drop, category. Default: "refuse".
	Missing string
}

// Query asks a question of the rows of all parties together.
type Query struct {
	// Names a query, and its answer. Values: 1 to 60 letters, digits, dots, dashes and underscores.
	// Required.
	Name string
	// Says what is asked: how many rows there are, of a column's numbers the sum, the mean, the
	// variance or quantiles, of two columns the covariance or the correlation, how many rows are in
	// each bin of a column, or of two, how many rows an event has not come to over time, a linear
	// model of a column, a logistic model of an event, or which texts are the most frequent, and how
	// many rows have each. Values: count, sum, mean, variance, covariance, correlation, histogram,
	// crosstab, quantiles, survival, linear, logistic, heavy. Required.
	Kind string
	// Names the column that it is of. Values: 1 to 60 letters, digits, dots, dashes and underscores.
	// Default: none; required but for a count and a logistic model.
	Column string
	// Names the other column of a crosstab, a covariance or a correlation. Values: 1 to 60 letters,
	// digits, dots, dashes and underscores. Default: none; required of these.
	By string
	// Lists the columns that a model predicts from: of numbers, and of a logistic model also of
	// words. Values: 1 to 200 characters each. Default: none; required of a linear and a logistic
	// model.
	On []string
	// Says of which rows the event has come, as where does: of a survival curve at the time in the
	// column, until which other rows are known about, and no longer; of a logistic model what it
	// predicts. Values: up to 500 characters. Default: none; required of a survival curve and a
	// logistic model.
	Event string
	// Asks of the rows only for which it holds: conditions such as age >= 65 with and between them.
	// Values: up to 500 characters. Default: none: all rows.
	Where string
	// Cuts the range of a column of numbers into this many parts of equal width. Range: 2 to 65,536
	// (bins). Default: 10, or one for each of up to 20 whole numbers; of quantiles 256, and a power
	// of two.
	Bins int
	// Cuts the range of the other column. Range: 2 to 65,536 (bins). Default: as bins.
	ByBins int
	// Lists the quantiles that are asked for, in ascending order. Range: above 0, below 1. Default:
	// 0.25, 0.5 and 0.75.
	At []float64
	// Asks for at most this many of the most frequent texts: fewer come out where noise hides the
	// others. Range: 1 to 1000 (texts). Default: 20 of heavy.
	Top int `json:",omitempty"`
	// Gives the query this part of the budget: its noise is 1/√share of what it were alone. Range:
	// above 0, to 1 (share). Default: equal parts of what is left.
	Share float64
}
