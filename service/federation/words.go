package federation

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/tensor"
)

// Meaning explains in sentences what taking part means for a party: what the job declares, and what
// the service transmits.
func (f *Federation) Meaning() []string {
	out := f.Settled.Explain()
	if f.asks == nil {
		out = append(out, fmt.Sprintf("The model has %d shared numbers, of type %s.", f.Spec.Len(),
			f.Job.Model.DType))
	}
	switch m := &f.Job.Model; {
	case f.asks != nil: // which Explain tells in whole
	case m.File != "":
		out = append(out, "The first model comes from the file "+m.File+".")
	case f.Initial != nil:
		out = append(out, fmt.Sprintf("The first model is drawn from the seed %d.", f.Job.Seed))
	}
	if len(f.Kept) > 0 {
		out = append(out, "These parts stay with each party and never leave it: "+
			strings.Join(f.Kept, ", ")+".")
	}
	return append(out, fmt.Sprintf("In a round each party sends %s and receives %s.", size(f.Up()),
		size(f.down())))
}

// Needs states the resources that the server needs.
func (f *Federation) Needs() []string {
	d, n := f.Spec.Len(), f.Settled.Roster().Len()
	tables := 700 * n * n // shares, keys and signatures of all pairs, with their copies
	if one := f.Settled.Oneshot(); one != nil {
		tables = 4 * oneshot.DefaultBatch * f.Up() // submissions until the members have checked them
	}
	return []string{
		fmt.Sprintf("Memory of the leading node: about %s.", size(40<<20+6*8*d+tables)),
		fmt.Sprintf("Disk, on each node: about %s, and a line of the audit log for each event.",
			size(2*(8*d+tables)+(1<<20))),
	}
}

// Up returns roughly how many bytes a party sends in a round.
func (f *Federation) Up() int {
	if figures := f.oneshot(); figures != nil {
		return figures.Up
	}
	return f.Settled.Layout().PackedSize() + 400*f.Settled.Roster().Len()
}

func (f *Federation) down() int {
	width := 4
	if f.Spec.DType == tensor.Float64 {
		width = 8
	}
	if figures := f.oneshot(); figures != nil {
		return f.Spec.Len()*width + figures.Down
	}
	return f.Spec.Len()*width + 400*f.Settled.Roster().Len()
}

// oneshot returns the figures of sums of one message, nil where sums are pairwise.
func (f *Federation) oneshot() *oneshot.Figures {
	one := f.Settled.Oneshot()
	if one == nil {
		return nil
	}
	figures, err := one.Parameters()
	if err != nil { // they were available when the job was settled
		return nil
	}
	return &figures
}

func size(bytes int) string {
	switch {
	case bytes < 10_000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 10_000_000:
		return fmt.Sprintf("%d kB", bytes/1000)
	}
	return fmt.Sprintf("%d MB", bytes/1_000_000)
}
