package job

// columnName is the form of a column's name, in words.
const columnName = "1 to 60 letters, digits, dots, dashes and underscores"

var theColumn = tableOf(
	text("name", func(c *Column) *string { return &c.Name },
		"Names a column, as the head of a party's rows has it.").
		form(columnName, namePattern.MatchString).required(),
	word("type", func(c *Column) *string { return &c.Type }, "number whole category text",
		"Says what its values are: numbers, whole numbers, one of some words, or any word or "+
			"text.").required(),
	text("unit", func(c *Column) *string { return &c.Unit }, "Says what a number counts, as years.").
		form("up to 60 characters", atMost(60)),
	numbers("range", func(c *Column) *[]float64 { return &c.Range },
		"Bounds the numbers of a column: the least and the most.").
		means("none; required of numbers"),
	word("outside", func(c *Column) *string { return &c.Outside }, "clip drop",
		"Says what becomes of a number outside of the range, or of a text that is longer than longest: "+
			"it counts as the nearest inside, or as its first characters, or it does not count.").
		or("clip"),
	texts("categories", func(c *Column) *[]string { return &c.Categories },
		"Lists the words of a category.").means("none; required of categories"),
	whole("longest", func(c *Column) *int { return &c.Longest }, between(1, maxWord),
		"Bounds the length of a text, in UTF-8. Texts are compared in small letters, with one space for "+
			"all white space between words and none around them.").unit("bytes").
		means("16 of a text"),
	texts("blank", func(c *Column) *[]string { return &c.Blank },
		"Lists what stands for a missing value, next to nothing at all, such as a question mark.").
		means("none"),
	word("missing", func(c *Column) *string { return &c.Missing }, "refuse drop category",
		"Says what becomes of a row without a value here, or with an unknown one: the party's program "+
			"refuses its rows, queries of the column leave the row out, or it counts as a category of its "+
			"own.").or("refuse"),
)

var theQuery = tableOf(
	text("name", func(q *Query) *string { return &q.Name }, "Names a query, and its answer.").
		form(columnName, namePattern.MatchString).required(),
	word("kind", func(q *Query) *string { return &q.Kind },
		"count sum mean variance covariance correlation histogram crosstab quantiles survival linear "+
			"logistic heavy",
		"Says what is asked: how many rows there are, of a column's numbers the sum, the mean, the "+
			"variance or quantiles, of two columns the covariance or the correlation, how many rows are "+
			"in each bin of a column, or of two, how many rows an event has not come to over time, a "+
			"linear model of a column, a logistic model of an event, or which texts are the most "+
			"frequent, and how many rows have each.").required(),
	text("column", func(q *Query) *string { return &q.Column }, "Names the column that it is of.").
		form(columnName, namePattern.MatchString).
		means("none; required but for a count and a logistic model"),
	text("by", func(q *Query) *string { return &q.By },
		"Names the other column of a crosstab, a covariance or a correlation.").
		form(columnName, namePattern.MatchString).means("none; required of these"),
	texts("on", func(q *Query) *[]string { return &q.On },
		"Lists the columns that a model predicts from: of numbers, and of a logistic model also of "+
			"words.").
		means("none; required of a linear and a logistic model"),
	text("event", func(q *Query) *string { return &q.Event },
		"Says of which rows the event has come, as where does: of a survival curve at the time in the "+
			"column, until which other rows are known about, and no longer; of a logistic model what "+
			"it predicts.").
		form("up to 500 characters", atMost(500)).
		means("none; required of a survival curve and a logistic model"),
	text("where", func(q *Query) *string { return &q.Where },
		"Asks of the rows only for which it holds: conditions such as age >= 65 with and between them.").
		form("up to 500 characters", atMost(500)).means("none: all rows"),
	whole("bins", func(q *Query) *int { return &q.Bins }, between(2, maxBins),
		"Cuts the range of a column of numbers into this many parts of equal width.").unit("bins").
		means("10, or one for each of up to 20 whole numbers; of quantiles 256, and a power of two"),
	whole("by_bins", func(q *Query) *int { return &q.ByBins }, between(2, maxBins),
		"Cuts the range of the other column.").unit("bins").means("as bins"),
	numbers("at", func(q *Query) *[]float64 { return &q.At },
		"Lists the quantiles that are asked for, in ascending order.").within(inside).
		means("0.25, 0.5 and 0.75"),
	whole("top", func(q *Query) *int { return &q.Top }, between(1, maxTop),
		"Asks for at most this many of the most frequent texts: fewer come out where noise hides the "+
			"others.").unit("texts").means("20 of heavy"),
	number("share", func(q *Query) *float64 { return &q.Share }, limits{hi: 1, above: true},
		"Gives the query this part of the budget: its noise is 1/√share of what it were alone.").
		unit("share").means("equal parts of what is left"),
)
