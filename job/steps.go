package job

// This file has what of the vector a model by steps takes, and its rules: each round sums score and
// information of all rows at coefficients that follow from the rounds before.

const (
	// stepRounds is how many rounds a model by steps takes: fewer leave less to average, and more
	// have more noise each.
	stepRounds = 12
	// BaselineTerms is how many coefficients the logarithm of a baseline hazard has: it is a parabola
	// of the root of time, along which events are spread more evenly than along time.
	BaselineTerms = 3
	// mostSlopes is the most coefficients of a model by steps.
	mostSlopes = 40
	// stepKept counts the numbers that a fit keeps in addition to coefficients and their sums.
	stepKept = 7
)

// Steps reports whether a query takes several rounds. A logistic model does if the moments of its
// columns, which take one, are too many.
func (j *Job) Steps(q *Query) bool {
	return q.Kind == "cox" || q.Kind == "poisson" || q.Kind == "logistic" && !j.byMoments(q)
}

// queryRounds is how many rounds the queries take: those of one round are in the first.
func (j *Job) queryRounds() int {
	for i := range j.Query {
		if j.Steps(&j.Query[i]) {
			return stepRounds
		}
	}
	return 1
}

// Coefficients returns how many coefficients a model by steps of a valid job has: those of the
// baseline, of each stratum, and the slopes, with one for each word of a column but the first.
func (j *Job) Coefficients(q *Query) (baseline, slopes int) {
	if baseline = 1; q.Kind == "cox" {
		baseline = BaselineTerms
		if by := j.columnNamed(q.By); by != nil {
			baseline *= max(1, len(by.Words()))
		}
	}
	for _, name := range q.On {
		switch column := j.columnNamed(name); {
		case column == nil:
		case column.Numeric():
			slopes++
		default:
			slopes += len(column.Words()) - 1
		}
	}
	return baseline, slopes
}

// stepNumbers is how many numbers a model by steps has: a sum has a score and an information, and
// what is made of the sums for the next round has three lists and a matrix.
func (j *Job) stepNumbers(q *Query) float64 {
	baseline, slopes := j.Coefficients(q)
	n := float64(baseline + slopes)
	return n*(n+1)/2 + 3*n + stepKept
}

// steps checks what only models by steps, and logistic models, have, at the path of the query.
func (c *checker) steps(q *Query, at string) {
	if !c.Steps(q) && q.Kind != "logistic" {
		return
	}
	event, _ := c.Event(q)
	for _, name := range q.On {
		for _, condition := range event {
			c.refuse(condition.Column == name, at+".on", "list other columns",
				"%q decides the event", name)
		}
		c.refuse(q.Kind == "cox" && name == q.By, at+".on", "leave it out",
			"each word of %q has a baseline of its own", name)
	}
	if !c.Steps(q) {
		return
	}
	baseline, slopes := c.Coefficients(q)
	c.refuse(baseline+slopes > mostSlopes, at+".on", "list fewer columns, or columns with fewer words",
		"the model has %d coefficients, more than %d", baseline+slopes, mostSlopes)
	column := c.columnNamed(q.Column)
	if column == nil || !column.Numeric() || len(column.Range) != 2 {
		return
	}
	const why = "the range of %q begins at %v"
	from := column.Range[0]
	c.refuse(from != 0 && q.Kind == "poisson", at+".column", "name a column of counts from 0",
		why+", and counts at 0", q.Column, from)
	c.refuse(!(from >= 0) && q.Kind == "cox", at+".column", "name a column of times from 0",
		why+", and rows are at risk from 0", q.Column, from)
}
