package job

// columnName is the form of a column's name, in words.
const columnName = "1 to 60 letters, digits, dots, dashes and underscores"

var theColumn = tableOf(
	text("name", func(c *Column) *string { return &c.Name },
		"Names a column, as in the header of a party's rows.").
		form(columnName, namePattern.MatchString).required(),
	word("type", func(c *Column) *string { return &c.Type }, "number whole category text",
		"Says what its values are: numbers, whole numbers, one of some words, or any word or "+
			"text.").required(),
	text("unit", func(c *Column) *string { return &c.Unit }, "Names the unit of its numbers, such as "+
		"years.").
		form("up to 60 characters", atMost(60)),
	numbers("range", func(c *Column) *[]float64 { return &c.Range },
		"Bounds the numbers of a column: the least and the greatest.").
		means("none; required for numbers"),
	word("outside", func(c *Column) *string { return &c.Outside }, "clip drop",
		"Says how a number outside the range, or a text longer than longest, is treated: it counts as "+
			"the nearest inside, or as its first characters, or it does not count.").
		or("clip"),
	texts("categories", func(c *Column) *[]string { return &c.Categories },
		"Lists the words of a category.").means("none; required for categories"),
	whole("longest", func(c *Column) *int { return &c.Longest }, between(1, maxWord),
		"Bounds the length of a text, in UTF-8. Texts are compared in lower case, with one space for "+
			"all white space between words and none around them.").unit("bytes").
		means("16 for texts"),
	texts("blank", func(c *Column) *[]string { return &c.Blank },
		"Lists what stands for a missing value, in addition to an empty one, such as a question mark.").
		means("none"),
	word("missing", func(c *Column) *string { return &c.Missing }, "refuse drop category",
		"Says how a row with a missing or unknown value here is treated: the party's program refuses "+
			"its rows, queries of the column leave the row out, or it counts as a category of its own.").
		or("refuse"),
)

var theQuery = tableOf(
	text("name", func(q *Query) *string { return &q.Name }, "Names a query, and its answer.").
		form(columnName, namePattern.MatchString).required(),
	word("kind", func(q *Query) *string { return &q.Kind },
		"count sum mean variance covariance correlation histogram crosstab quantiles survival logrank "+
			"evaluation cindex linear logistic cox poisson heavy",
		"Says what is asked: the number of rows; the sum, the mean, the variance or quantiles of a "+
			"column's numbers; the covariance or the correlation of two columns; how many rows are in each "+
			"bin of a column, or of two; how many rows have not had an event yet, over time, and whether "+
			"groups differ in that; how well scores predict an event, or how soon it comes; a linear "+
			"model of a column; a logistic model of an event; Cox's model of the time until an event;"+
			" a Poisson model of a column of counts; or which texts are the most frequent, and how "+
			"many rows have each.").
		refuses("gamma", "a gamma model is not offered, since noise is for the largest outcome over the "+
			"smallest mean, and hides all slopes", "ask for a linear model of a column of "+
			"logarithms").required(),
	text("column", func(q *Query) *string { return &q.Column }, "Names the column that the query is "+
		"about.").
		form(columnName, namePattern.MatchString).
		means("none; required except for a count and a logistic model"),
	text("by", func(q *Query) *string { return &q.By },
		"Names the other column of a crosstab, a covariance or a correlation, the scores of a C-index, "+
			"or the groups of a log-rank test or an evaluation, or the strata of Cox's model.").
		form(columnName, namePattern.MatchString).
		means("none; required for these, except for an evaluation of all rows together and Cox's model"),
	texts("on", func(q *Query) *[]string { return &q.On },
		"Lists the columns that a model predicts from: columns of numbers, and except for a linear "+
			"model also of words.").
		means("none; required for a model"),
	text("event", func(q *Query) *string { return &q.Event },
		"Says which rows have had the event, in the form of where. In a survival curve, a log-rank "+
			"test, a C-index and Cox's model it came at the time in the column, which for other rows is "+
			"how long they are known about; a logistic model and scores predict it.").
		form("up to 500 characters", atMost(500)).
		means("none; required for survival curves, log-rank tests, evaluations, C-indices, Cox and "+
			"logistic models"),
	text("where", func(q *Query) *string { return &q.Where },
		"Limits the query to rows for which it holds: conditions such as age >= 65, joined by and.").
		form("up to 500 characters", atMost(500)).means("none: all rows"),
	whole("bins", func(q *Query) *int { return &q.Bins }, between(2, maxBins),
		"Cuts the range of a column of numbers into this many parts of equal width.").unit("bins").
		means("10, or one for each of up to 20 whole numbers; for curves over time 36, or one for each "+
			"of up to 60; for an evaluation 32; for quantiles 256, and a power of two"),
	whole("by_bins", func(q *Query) *int { return &q.ByBins }, between(2, maxBins),
		"Cuts the range of the other column.").unit("bins").means("as bins"),
	numbers("at", func(q *Query) *[]float64 { return &q.At },
		"Lists the quantiles that are asked for, or the scores from which on an evaluation's rows count "+
			"as predicted to have the event, in ascending order.").within(inside).
		means("0.25, 0.5 and 0.75; for an evaluation 0.5"),
	whole("top", func(q *Query) *int { return &q.Top }, between(1, maxTop),
		"Asks for at most this many of the most frequent texts: fewer come out where noise hides the "+
			"others.").unit("texts").means("20 for heavy"),
	number("share", func(q *Query) *float64 { return &q.Share }, limits{hi: 1, above: true},
		"Gives the query this share of the budget: its noise is 1/√share times what it would be alone.").
		unit("share").means("equal parts of what is left"),
)
