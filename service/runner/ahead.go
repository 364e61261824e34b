package runner

import (
	"slices"
	"sync"

	"github.com/hushsum/hushsum/drive"
)

// ahead holds the submissions that wait for the runner's lock, so that the caller that holds it
// checks the proofs of all of them at once.
type ahead struct {
	mu   sync.Mutex
	wait []*drive.Submission
}

func (a *ahead) add(one *drive.Submission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait = append(a.wait, one)
}

// remove drops a submission, unless it was taken.
func (a *ahead) remove(one *drive.Submission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait = slices.DeleteFunc(a.wait, func(other *drive.Submission) bool { return other == one })
}

// take returns all submissions, which then no longer wait.
func (a *ahead) take() (all []drive.Submission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.wait {
		all = append(all, *one)
	}
	a.wait = nil
	return all
}
