package runner

import (
	"slices"
	"sync"

	"github.com/hushsum/hushsum/drive"
)

// ahead has the submissions that wait for the runner's lock, so that whoever has it checks the
// proofs of all of them at once.
type ahead struct {
	mu   sync.Mutex
	wait []*drive.Submission
}

func (a *ahead) add(one *drive.Submission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait = append(a.wait, one)
}

// remove forgets one, if nobody has taken it.
func (a *ahead) remove(one *drive.Submission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait = slices.DeleteFunc(a.wait, func(other *drive.Submission) bool { return other == one })
}

// take returns all of them, which are not waited for any more.
func (a *ahead) take() (all []drive.Submission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.wait {
		all = append(all, *one)
	}
	a.wait = nil
	return all
}
