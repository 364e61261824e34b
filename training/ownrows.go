package training

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/table"
)

// mostNumbers bounds the numbers of a party's rows: 8 GiB of them.
const mostNumbers = 1 << 30

// ReadRows reads a party's rows for a declared training from a table whose columns count by their
// order: the features, which are numbers, and last the class, from 0. With persons the first
// column says whose a row is. It fails with [table.ErrRows] where a row has anything else, or
// there is none.
func ReadRows(t *table.Table, want job.Model, persons bool) (*learning.Dataset, error) {
	first, form := 0, ""
	if persons {
		first, form = 1, "whose a row is, "
	}
	d := &learning.Dataset{Features: want.Features}
	known := make(map[string]int)
	n := 0
	for row, err := range t.Rows {
		if n++; err != nil {
			return nil, err
		}
		if len(row) != first+want.Features+1 {
			var value any
			if len(row) > 0 {
				value = row[0]
			}
			return nil, t.Wrong(n, -1, value, "give each row its values in this order", "it has %d values; "+
				"the job's rows have %s%d features, followed by the class", len(row), form, want.Features)
		}
		for _, value := range row {
			if refused, is := value.(*table.Error); is {
				return nil, refused
			}
		}
		if n*want.Features > mostNumbers {
			return nil, &table.Error{File: t.Name, Advice: "bring a part of them",
				Reason: fmt.Sprintf("it has more than %d numbers", mostNumbers)}
		}
		if persons {
			text, ok := words(row[0])
			if !ok || text == "" {
				return nil, t.Wrong(n, 0, row[0], "", "it does not say whose the row is")
			}
			who, found := known[text]
			if !found {
				who = len(known)
				known[text] = who
			}
			d.Writers = append(d.Writers, who)
		}
		for i, value := range row[first : first+want.Features] {
			x, reason, advice := numeral(value)
			if reason != "" {
				if n == 1 && t.Text != nil && !t.Text.Named {
					advice = "leave out the header, if this is one"
				}
				return nil, t.Wrong(n, first+i, value, advice, "%s", reason)
			}
			d.X = append(d.X, x)
		}
		class := row[len(row)-1]
		x, reason, advice := numeral(class)
		if reason == "" && (x != math.Trunc(x) || x < 0 || x >= float64(want.Classes)) {
			reason = fmt.Sprintf("the class is %v, and not a whole number of 0 to %d", x, want.Classes-1)
		}
		if reason != "" {
			return nil, t.Wrong(n, len(row)-1, class, cmp.Or(advice, "the last value of a row is its class"),
				"%s", reason)
		}
		d.Labels = append(d.Labels, int(x))
	}
	if d.Len() == 0 {
		return nil, &table.Error{File: t.Name, Reason: "there are no rows"}
	}
	return d, nil
}

// numeral returns the number that a value is, or why it is none.
func numeral(value any) (x float64, reason, advice string) {
	switch v := value.(type) {
	case float64:
		x = v
	case float32:
		x, _ = strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64) // as in CSV
	case int64:
		x = float64(v)
	case uint64:
		x = float64(v)
	case bool:
		if v {
			x = 1
		}
	default:
		text, ok := words(value)
		if !ok {
			reason, advice = table.NotTaken(value)
			return 0, reason, advice
		}
		if text == "" {
			return 0, "the value is missing, and training takes rows that have all", ""
		}
		if x, ok = table.Number(text); !ok {
			reason, advice = table.NotNumber(text)
		}
		return x, reason, advice
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		reason, advice = table.NotNumber(strings.TrimPrefix(fmt.Sprint(x), "+")) // as in queries
		return 0, reason, advice
	}
	return x, "", ""
}

// words returns the text of a value, empty if there is none.
func words(value any) (text string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case *table.Field:
		return v.Text, true
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}
