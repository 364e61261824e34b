package job

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Condition is one condition of a query's where: it compares the value of a column with a number or
// a word.
type Condition struct {
	Column string
	Op     string  // =, !=, <, <=, > or >=
	Number float64 // of a column of numbers; of categories the place in Words
}

// Conditions returns the conditions of a query; the query takes the rows for which all of them
// hold. It fails if a condition is malformed, or if a column or a word is unknown.
func (j *Job) Conditions(q *Query) (all []Condition, err error) { return j.conditions(q.Where) }

// Event returns the conditions of the event of a query, as [Job.Conditions] does.
func (j *Job) Event(q *Query) (all []Condition, err error) { return j.conditions(q.Event) }

func (j *Job) conditions(text string) (all []Condition, err error) {
	rest := strings.TrimSpace(text)
	for rest != "" {
		if len(all) > 0 {
			after, found := strings.CutPrefix(rest, "and ")
			if strings.HasPrefix(rest, "or ") {
				return nil, errors.New("or is not supported: a query takes the rows for which all conditions " +
					"hold; use a query for each side, or a histogram")
			}
			if !found {
				return nil, fmt.Errorf("there is no and between the conditions before %s", show(rest))
			}
			rest = strings.TrimSpace(after)
		}
		var c Condition
		if c, rest, err = j.condition(rest); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// ops are the comparisons, those of two characters first.
var ops = []string{"!=", "<=", ">=", "=", "<", ">"}

// condition reads one condition and returns the rest.
func (j *Job) condition(text string) (c Condition, rest string, err error) {
	end := strings.IndexFunc(text, func(r rune) bool {
		return !strings.ContainsRune("._-", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') &&
			(r < 'a' || r > 'z')
	})
	if end < 0 {
		end = len(text)
	}
	c.Column = text[:end]
	column := j.columnNamed(c.Column)
	if column == nil {
		return c, "", fmt.Errorf("there is no column %s", show(c.Column))
	}
	rest = strings.TrimSpace(text[end:])
	k := slices.IndexFunc(ops, func(op string) bool { return strings.HasPrefix(rest, op) })
	if k < 0 {
		return c, "", fmt.Errorf("after %s there is none of =, !=, <, <=, > and >=", c.Column)
	}
	c.Op = ops[k]
	rest = strings.TrimSpace(rest[len(c.Op):])
	value, rest, err := cutWord(rest)
	if err != nil {
		return c, "", err
	}
	if column.Type == "text" {
		return c, "", fmt.Errorf("%s has texts, which are compared with nothing", c.Column)
	}
	if column.Numeric() {
		if c.Number, err = strconv.ParseFloat(value, 64); err != nil || math.IsNaN(c.Number) {
			return c, "", fmt.Errorf("%s is not a number, and %s has numbers", show(value), c.Column)
		}
		return c, rest, nil
	}
	place := slices.Index(column.Words(), value)
	switch {
	case c.Op != "=" && c.Op != "!=":
		return c, "", fmt.Errorf("words such as those of %s are compared by = and !=", c.Column)
	case place < 0:
		return c, "", fmt.Errorf("%s is not a category of %s", show(value), c.Column)
	}
	c.Number = float64(place)
	return c, rest, nil
}

// cutWord cuts a text behind its first word, which may stand between single quotes.
func cutWord(text string) (value, rest string, err error) {
	if quoted, is := strings.CutPrefix(text, "'"); is {
		value, rest, closed := strings.Cut(quoted, "'")
		if !closed {
			return "", "", fmt.Errorf("a quote is not closed")
		}
		return value, strings.TrimSpace(rest), nil
	}
	value, rest, _ = strings.Cut(text, " ")
	if value == "" {
		return "", "", fmt.Errorf("a condition has no value")
	}
	return value, strings.TrimSpace(rest), nil
}

// Holds reports whether a condition is true of a value. A missing value is NaN, for which no
// condition is true.
func (c *Condition) Holds(x float64) bool {
	switch c.Op {
	case "=":
		return x == c.Number
	case "!=":
		return x != c.Number && !math.IsNaN(x)
	case "<":
		return x < c.Number
	case "<=":
		return x <= c.Number
	case ">":
		return x > c.Number
	}
	return x >= c.Number
}
