package old

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/job"
)

// syntheticRows is how many synthetic rows a spec dealt unless it said more.
const syntheticRows = 20_000

// Spec reads a spec of hushsumd dev as a job, with notes on what is written otherwise or means
// something else, also where [Read] takes the text for a scenario or a federation's file. It fails
// as Read does.
func Spec(name string, text []byte) (j *job.Job, notes []string, err error) {
	c := &conversion{name: name, text: text, job: new(job.Job)}
	if err = c.federation(FormSpec); err == nil {
		err = c.finish(nil)
	}
	if err != nil {
		return nil, nil, err
	}
	return c.job, c.notes, nil
}

// spec brings over what a spec has and a federation's file has not.
func (c *conversion) spec(f *file) {
	j, d := c.job, f.Data
	c.refuse(f.Training == nil, "training", "write [training] with a model", "it declares no training")
	c.refuse(f.Training != nil && f.Training.Rows != fileTraining{}.Rows, "training.rows",
		"leave it out", "the data determine what rows are like")
	c.refuse(f.Roster != "", "roster", "leave it out", "a spec's parties are its own")
	c.refuse(d.Set == "", "data.set", "write the name of a set", "it names no rows")
	c.refuse(len(f.Party) == 0, "party", "write [[party]] with count", "there are no parties")
	for k, p := range f.Party {
		if p.Name == "" {
			p.Name = fmt.Sprint("party-", k+1)
		}
		c.refuse(p.Count < 0, "party.count", "write 1 or more", "%d is not a number of parties", p.Count)
		j.Parties.Group = append(j.Parties.Group, job.Group{Name: p.Name, Count: p.Count})
	}
	c.note("[data] is [world.data], [[party]] is [[parties.group]]")
	j.World.Data = job.Data{Set: d.Set, Rows: d.Rows, Split: d.Split, Concentration: d.Concentration,
		Test: d.Test}
	if d.Concentration != 0 && !strings.HasPrefix(d.Split, "dirichlet") {
		j.World.Data.Concentration = 0
		c.unused("data.concentration", "it applies to the Dirichlet splits only")
	}
	if d.Rows == 0 {
		c.allRows()
	}
	if t := f.Training; t != nil && t.ByRows {
		j.Sum.MaxWeight = d.Rows // of which no party has more
	}
}

// allRows has parties use all rows that they are dealt, as they did where a spec did not say how
// many: sets of images do so still.
func (c *conversion) allRows() {
	d := &c.job.World.Data
	switch d.Set {
	case "digits", "mnist", "fashion-mnist":
		return
	case "synthetic":
		n := max(1, c.job.Size())
		d.Rows = (syntheticRows + n - 1) / n
		c.note("world.data.rows = %d is written, the part of a party in the %d synthetic rows of a "+
			"spec; a split that deals one more takes more", d.Rows, syntheticRows)
	default:
		d.All = true
		c.note("world.data.all = true is written: by default a party has 200 of the rows")
	}
}
