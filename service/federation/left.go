package federation

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/job"
)

// noisier is how many times the noise of a whole budget that of the rest of one has to be before an
// operator is warned.
const noisier = 3

// Left warns if what was spent before leaves so little of the budget of a federation made of files
// that its noise is several times the noise under the whole budget. There are otherwise.
func (f *Federation) Left(files *Files) (warnings []string) {
	if f.Settled.Before() == nil || f.Settled.Mechanism() == nil || f.Job.Privacy.Epsilon == 0 {
		return nil
	}
	j, err := job.Parse("", files.Text)
	if err != nil || j.Privacy.Multiplier > 0 { // of queries, which have their own noise
		return nil
	}
	j.Privacy.Before = ""
	whole := *files
	whole.Before, whole.Succession = nil, nil
	if whole.Text, err = j.MarshalText(); err != nil {
		return nil
	}
	alone, err := New(whole)
	if err != nil {
		return nil
	}
	ratio := f.noise() / alone.noise()
	ledger, err := f.Settled.Ledger()
	if err != nil || ledger == nil || ratio < noisier {
		return nil
	}
	var names []string
	for i := range f.Settled.Roster().Len() {
		names = append(names, f.Settled.Roster().Name(i))
	}
	_, most, err := ledger.Most(names...)
	if err != nil {
		return nil
	}
	return []string{fmt.Sprintf("of privacy.epsilon, %v, the party with most has spent %s before: "+
		"the noise of %s is %.3g times what the whole would need; write a larger privacy.epsilon, which "+
		"parties have to agree to, or fewer rounds", f.Job.Privacy.Epsilon, most.Most(),
		numbers.Plural(f.Settled.Rounds(), "round"), ratio)}
}

// noise returns the standard deviation of a sum's noise, relative to the sensitivity.
func (f *Federation) noise() float64 {
	m := f.Settled.Mechanism().Vector
	return m.SumStdDev(m.Shares.MinHonest) / m.Sensitivity.L2
}
