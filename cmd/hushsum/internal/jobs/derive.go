package jobs

import (
	"github.com/hushsum/hushsum/job"
)

// Derive reads the text of a file as Check does, and derives what its noise hides: with the roster
// and committee that it names, or with as many parties as it counts. It fails with job.ConfigError.
func Derive(file string, text []byte, set []string) (*job.Derivation, error) {
	j, err := job.Parse(file, text, set...)
	if err != nil {
		return nil, err
	}
	if !j.Noisy() {
		return nil, j.Mistake("privacy.noise", `write "discrete-gaussian", for example`,
			"there is no noise, and no epsilon to derive")
	}
	files, err := j.Files()
	if err != nil {
		return nil, err
	}
	if n := j.Size(); files.Roster == nil && n > 0 {
		if files.Roster, err = madeUp(n); err != nil {
			return nil, err
		}
	}
	if files.Committee == nil && j.Oneshot() {
		if files.Committee, err = madeUp(j.WithDefaults().Sum.Members); err != nil {
			return nil, err
		}
		files.MadeUp = true
	}
	settled, err := j.Settle(files)
	if err != nil {
		return nil, err
	}
	return settled.Derive()
}
