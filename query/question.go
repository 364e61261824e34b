package query

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/job"
)

// question holds all by which two queries are the same, whatever they are called and may spend.
type question struct {
	Query   job.Query    `json:"query"`
	Columns []job.Column `json:"columns"`
	Rows    int          `json:"rows"` // parties.rows
	Records int          `json:"records"`
	Noisy   bool         `json:"noisy"`
}

// Questions returns a canonical text of each query, in their order: two queries have the same
// text if they ask the same of rows of the same form, regardless of their names, their shares,
// the noise, and the order of their conditions.
func (p *Plan) Questions() (all []string, err error) {
	for i := range p.asks {
		q := *p.asks[i].Query
		q.Name, q.Share = "", 0
		out := question{Rows: p.job.Parties.Rows, Records: p.job.Privacy.Records, Noisy: p.job.Noisy()}
		var where []string
		for _, c := range p.asks[i].conditions {
			where = append(where, fmt.Sprintf("%s %s %v", c.Column, c.Op, c.Number))
		}
		slices.Sort(where)
		q.Where = strings.Join(slices.Compact(where), " and ")
		for _, name := range p.job.ColumnsOf(p.asks[i].Query) {
			k := slices.IndexFunc(p.job.Column, func(c job.Column) bool { return c.Name == name })
			out.Columns = append(out.Columns, p.job.Column[k])
		}
		q.Event = strings.Join(strings.Fields(q.Event), " ")
		out.Query = q
		text, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		all = append(all, string(text))
	}
	return all, nil
}
