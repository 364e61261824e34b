package job

// This file has what of the vector a logistic model takes, and its rules. The model's columns of
// numbers are released as moments: means of products of Chebyshev polynomials, up to a degree. They
// take one round; of many columns there are too many moments, and the model is fitted by steps.

// degrees are those of the polynomials over a given number of columns.
var degrees = [...]int{0, 24, 20, 16, 12}

// mostModelNumbers is the most numbers that a logistic model has of the vector.
const mostModelNumbers = 1 << 12

// byMoments reports whether a logistic model is fitted from moments, in one round.
func (j *Job) byMoments(q *Query) bool {
	return j.numbersOn(q) < len(degrees) && j.modelNumbers(q) <= mostModelNumbers
}

// numbersOn is how many columns of numbers a model predicts from.
func (j *Job) numbersOn(q *Query) (n int) {
	for _, name := range q.On {
		if column := j.columnNamed(name); column != nil && column.Numeric() {
			n++
		}
	}
	return n
}

// Degree returns the degree of the polynomials of a logistic model of a valid job: the largest
// degree, in all columns of numbers together, of the moments that are summed over rows.
func (j *Job) Degree(q *Query) int {
	return degrees[min(j.numbersOn(q), len(degrees)-1)]
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
