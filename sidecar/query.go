package sidecar

import (
	"bytes"
	"cmp"
	"encoding/json"

	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/query/asking"
	"github.com/hushsum/hushsum/table"
)

// queryCalls ask declared queries about rows.
var queryCalls = map[string]handler{
	"query.ask":     askQueries,
	"query.plan":    planQueries,
	"query.vector":  vectorOfRows,
	"query.answers": answersOfMean,
	"query.next":    nextOfMean,
}

// askedJSON holds the results of queries, or what they would cost.
type askedJSON struct {
	Answers  []json.RawMessage `json:"answers,omitempty"`
	Expected []answers.Planned `json:"expected,omitempty"`
	Spent    *claimed          `json:"spent"` // by all together; nil without noise
	Parties  int               `json:"parties"`
	Present  int               `json:"present"` // in the sum
	Rows     int               `json:"rows"`    // that may count
	Reports  []report          `json:"reports,omitempty"`
}

// report is one with its findings in words.
type report struct {
	*query.Report
	Told []string `json:"told"`
}

// describe fills in the fields that follow from the job.
func (a *askedJSON) describe(j *declared.Job, p *query.Plan) error {
	spent, err := p.Spent()
	if err != nil {
		return err
	}
	if j.Noisy() {
		words := said(spent)
		a.Spent = &words
	}
	a.Rows = p.Rows()
	return nil
}

// take adds answers.
func (a *askedJSON) take(all []query.Answer) error {
	for i := range all {
		text, err := json.Marshal(all[i])
		if err != nil {
			return err
		}
		a.Answers = append(a.Answers, text)
	}
	return nil
}

// worldOf reads a job that is asked here, of a given number of parties if it states none.
func worldOf(text []byte, parties, records int) (*declared.Job, []string, error) {
	j, err := declared.Parse("job", text)
	if err != nil {
		return nil, nil, err
	}
	if j.Size() == 0 {
		j.Parties.Count = parties
	}
	if err := asking.Check(j); err != nil {
		return nil, nil, err
	}
	if j.PerRecord() && j.Privacy.Records == 0 {
		j.Privacy.Records = records
	}
	return j, j.Names(), nil
}

// planQueries returns what the queries of a job will cost and give.
func planQueries(_ *sidecar, r *request) (any, [][]byte, error) {
	if err := r.take(&struct{}{}, 1); err != nil {
		return nil, nil, err
	}
	j, names, err := worldOf(r.blobs[0].private(), 0, 0)
	if err != nil {
		return nil, nil, err
	}
	w, err := asking.New(j, names)
	if err != nil {
		return nil, nil, err
	}
	out := &askedJSON{Expected: answers.Plan(w.Plan.Expected()), Parties: w.Parties}
	return out, nil, out.describe(w.Job, w.Plan)
}

// askQueries runs all parties of a job here. The blobs are its text and rows as CSV text: those of
// all parties, which are dealt to them, or those of each.
func askQueries(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Deal   bool     `json:"deal"`   // the rows are of one table
		Files  []string `json:"files"`  // names of tables, for messages
		Tables []bool   `json:"tables"` // which are no files, so that rows are numbered; nil: none
	}
	if err := r.takeWith(&with); err != nil {
		return nil, nil, err
	}
	tables := len(r.blobs) - 1
	if with.Tables == nil {
		with.Tables = make([]bool, max(0, tables))
	}
	if tables < 1 || with.Deal && tables != 1 || len(with.Files) != tables ||
		len(with.Tables) != tables {
		return nil, nil, requestError("", "query.ask comes with %d blobs and %d names of tables",
			len(r.blobs), len(with.Files))
	}
	text := r.blobs[0].private()
	j, err := declared.Parse("job", text)
	if err != nil {
		return nil, nil, err
	}
	out := &askedJSON{}
	var parties []*query.Rows
	records := 0
	for i, blob := range r.blobs[1:] {
		rows, found, err := readRows(j, with.Files[i], with.Tables[i], blob.private())
		if err != nil {
			return nil, nil, err
		}
		out.Reports = append(out.Reports, report{found, answers.Told(found)})
		parties, records = append(parties, rows), records+rows.Len()
	}
	j, names, err := worldOf(text, tables, records)
	if err != nil {
		return nil, nil, err
	}
	if with.Deal {
		parties = parties[0].Deal(len(names), j.World.Seed)
	}
	if len(parties) != len(names) {
		return nil, nil, fieldError("rows", "give one table, or one for each party",
			"%d tables do not match %d parties", len(parties), len(names))
	}
	w, err := asking.New(j, names)
	if err != nil {
		return nil, nil, err
	}
	if err := w.Run(s.ctx, parties); err != nil {
		return nil, nil, err
	}
	out.Parties, out.Present = w.Parties, w.Present
	if err := out.take(w.Answers); err != nil {
		return nil, nil, err
	}
	return out, nil, out.describe(w.Job, w.Plan)
}

// readRows reads CSV text: of a file, or of a table, whose rows are named by their numbers.
func readRows(j *declared.Job, name string, numbered bool, text []byte) (
	*query.Rows, *query.Report, error,
) {
	t, err := table.ReadCSV(name, bytes.NewReader(text), table.Hints{Numbered: numbered})
	if err != nil {
		return nil, nil, err
	}
	return query.NewSchema(j).ReadTable(*t)
}

// planOf compiles the queries of a settled job.
func planOf(s *sidecar, settled uint64) (*declared.Settled, *query.Plan, error) {
	j, err := lookup[*declared.Settled](s, settled, "job")
	if err != nil {
		return nil, nil, err
	}
	p, err := query.New(j)
	return j, p, err
}

// vectorOfRows returns the vector that a party contributes to a sum of a networked job: with a
// second blob at the model that its round begins with.
func vectorOfRows(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled uint64 `json:"settled"`
		File    string `json:"file"`  // for messages
		Table   bool   `json:"table"` // it is no file
	}
	if err := r.take(&with, max(1, min(2, len(r.blobs)))); err != nil {
		return nil, nil, err
	}
	j, p, err := planOf(s, with.Settled)
	if err != nil {
		return nil, nil, err
	}
	var model []float64
	if len(r.blobs) > 1 {
		if model, err = floats[float64](r.blobs[1].private()); err != nil {
			return nil, nil, requestError("", "the model: %v", err)
		}
	}
	file := cmp.Or(with.File, "the rows")
	rows, found, err := readRows(j.Job(), file, with.Table, r.blobs[0].private())
	if err == nil {
		err = p.Check(file, rows)
	}
	if err != nil {
		return nil, nil, err
	}
	vector, err := p.Vector(rows, model)
	return struct {
		Report report `json:"report"`
	}{report{found, answers.Told(found)}}, [][]byte{floatBlob(vector)}, err
}

// nextOfMean returns the model after a round of a networked job.
func nextOfMean(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled uint64 `json:"settled"`
		Parties int    `json:"parties"` // in the sum
	}
	if err := r.take(&with, 2); err != nil {
		return nil, nil, err
	}
	_, p, err := planOf(s, with.Settled)
	if err != nil {
		return nil, nil, err
	}
	var numbers [2][]float64
	for i := range numbers {
		if numbers[i], err = floats[float64](r.blobs[i].private()); err != nil {
			return nil, nil, requestError("", "the model and the mean: %v", err)
		}
	}
	next, err := p.Next(numbers[0], numbers[1], with.Parties)
	if err != nil {
		return nil, nil, err
	}
	return struct{}{}, [][]byte{floatBlob(next)}, nil
}

// answersOfMean reads answers from the mean of a networked job.
func answersOfMean(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled uint64 `json:"settled"`
		Parties int    `json:"parties"` // in the sum
	}
	if err := r.take(&with, 1); err != nil {
		return nil, nil, err
	}
	j, p, err := planOf(s, with.Settled)
	if err != nil {
		return nil, nil, err
	}
	mean, err := floats[float64](r.blobs[0].private())
	if err != nil {
		return nil, nil, requestError("", "the mean: %v", err)
	}
	all, err := p.Answers(mean, with.Parties)
	if err != nil {
		return nil, nil, err
	}
	out := &askedJSON{Parties: j.Roster().Len(), Present: with.Parties}
	if err := out.take(all); err != nil {
		return nil, nil, err
	}
	return out, nil, out.describe(j.Job(), p)
}
