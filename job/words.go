package job

import (
	"cmp"
	"math/bits"
)

// This file has what follows from columns of texts and queries for the most frequent ones, and the
// rules of both.

// How package query writes a word into the vector.
const (
	// WordSigns is how many numbers encode a byte of a word.
	WordSigns = 16
	// WordChecks is how many extra bytes are encoded to check a word.
	WordChecks = 2
)

const (
	maxWord, defaultWord = 64, 16   // bytes
	maxTop, defaultTop   = 1000, 20 // words
	leastBuckets         = 16
)

// Buckets returns the number of buckets of a query for the most frequent words: a power of two,
// with at least three buckets for each word that is asked for.
func (q *Query) Buckets() int {
	return max(leastBuckets, 1<<bits.Len(uint(3*cmp.Or(q.Top, defaultTop)-1)))
}

// wordNumbers is how many numbers of the vector are a query's for frequent words.
func (q *Query) wordNumbers(column *Column) float64 {
	longest := 0
	if column != nil {
		longest = column.Longest
	}
	return float64(q.Buckets() * WordSigns * (cmp.Or(longest, defaultWord) + WordChecks))
}

// text checks a column of texts.
func (c *checker) text(column *Column, at string) {
	const why = "it has no effect: values are texts"
	c.refuse(column.Range != nil, at+".range", "leave it out, or write longest", why)
	c.refuse(column.Unit != "", at+".unit", "leave it out", why)
	c.refuse(column.Categories != nil, at+".categories",
		`leave it out, or write type = "category"`, why)
	c.refuse(column.Missing == "category", at+".missing", `write "drop" or "refuse"`,
		"texts have no category")
}

// heavy checks which columns of texts a query reads, and that a query for frequent words is of one.
func (c *checker) heavy(q *Query, column *Column, at string) {
	heavy, by := q.Kind == "heavy", c.columnNamed(q.By)
	c.refuse(heavy && column != nil && column.Type != "text", at+".column",
		`name a column of type "text", or ask for a histogram`, "%q has no texts", q.Column)
	c.refuse(!heavy && q.Kind != "count" && column != nil && column.Type == "text", at+".column",
		`write kind = "heavy"`, "%q has texts, of which only the most frequent can be asked for",
		q.Column)
	c.refuse(q.Kind == "crosstab" && by != nil && by.Type == "text", at+".by",
		"name a column of numbers, or a category", "%q has texts that nobody has listed", q.By)
	c.refuse(!heavy && q.Top > 0, at+".top", `leave it out, or write kind = "heavy"`,
		"it applies to the most frequent texts only")
}
