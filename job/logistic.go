package job

import "fmt"

// This file has what of the vector a logistic model takes, and its rules. The model's columns of
// numbers are released as moments: means of products of Chebyshev polynomials, up to a degree.

// degrees are those of the polynomials over a given number of columns.
var degrees = [...]int{0, 24, 20, 16, 12}

// mostModelNumbers is the most numbers that a logistic model has of the vector.
const mostModelNumbers = 1 << 12

// Degree returns the degree of the polynomials of a logistic model of a valid job: the largest
// degree, in all columns of numbers together, of the moments that are summed over rows.
func (j *Job) Degree(q *Query) int {
	n := 0
	for _, name := range q.On {
		if column := j.columnNamed(name); column != nil && column.Numeric() {
			n++
		}
	}
	return degrees[min(n, len(degrees)-1)]
}

// modelNumbers is how many numbers a logistic model has: for each combination of words the moments
// of its columns of numbers, and for each coefficient what the outcome and its column have in
// common.
func (j *Job) modelNumbers(q *Query) float64 {
	moments, coefficients, n := 1.0, 1.0, 0.0
	degree := float64(j.Degree(q))
	for _, name := range q.On {
		switch column := j.columnNamed(name); {
		case column == nil:
		case column.Numeric():
			n++
			moments *= (degree + n) / n // to the binomial of degree + n over n
			coefficients++
		default:
			moments *= float64(len(column.Words()))
			coefficients += float64(len(column.Words()) - 1)
		}
	}
	return moments + coefficients
}

// logistic checks what only a logistic model has, at the path of its columns.
func (c *checker) logistic(q *Query, at string) {
	if q.Kind != "logistic" {
		return
	}
	n := 0
	event, _ := c.Event(q)
	for _, name := range q.On {
		column := c.columnNamed(name)
		if column != nil && column.Numeric() {
			n++
		}
		for _, condition := range event {
			c.refuse(condition.Column == name, at, "list other columns", "%q decides the event", name)
		}
	}
	c.refuse(n >= len(degrees), at, fmt.Sprintf("list up to %d columns of numbers", len(degrees)-1),
		"there are %d columns of numbers, and a logistic model takes every combination of them", n)
	numbers := c.modelNumbers(q)
	c.refuse(n < len(degrees) && numbers > mostModelNumbers, at,
		"list fewer columns, or columns with fewer words",
		"every combination of them takes %.0f numbers, more than %d", numbers, mostModelNumbers)
}
