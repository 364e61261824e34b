package sidecar

import (
	"crypto/ed25519"
	"sync"

	"github.com/hushsum/hushsum/drive"
	declared "github.com/hushsum/hushsum/job"
)

// A party of a job has one guard in a sidecar, whatever sessions it is in, and whether its objects
// are closed or not: a coordinator that begins again, with another session, finds what was counted.
// The guard ends with the sidecar; what must outlive that is in the saved states.

// maxGuards is how many parties' submissions may be counted at a time, to bound memory.
const maxGuards = 1 << 18

// account names a party of a job.
type account struct {
	job   [32]byte // digest, settled
	party [ed25519.PublicKeySize]byte
}

// counted holds the counts of a guard, see drive.Guard.
type counted struct {
	last, count uint64
}

// spent returns the counts of a party of a job that may have submitted in every round up to a given
// one, as often as it has agreed to.
func spent(settled *declared.Settled, round uint64) counted {
	return counted{round, min(round, uint64(settled.Submissions()))}
}

// and combines two counts of the same party.
func (c counted) and(other counted) counted {
	return counted{max(c.last, other.last), max(c.count, other.count)}
}

// guard counts the releases of a party. The party's objects share it.
type guard struct {
	mutex sync.Mutex
	of    drive.Guard
}

// counted returns the counts that are saved of the guard.
func (g *guard) counted() counted {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return counted{g.of.Last(), g.of.Count()}
}

// submit has work make a submission, and count it in next: next replaces the guard's counts from
// then on, unless work fails. Then nothing can leave, and nothing is counted.
func (g *guard) submit(work func(next *drive.Guard) error) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	next := g.of
	if err := work(&next); err != nil {
		return err
	}
	g.of = next
	return nil
}

// learn adds what else is known of the party.
func (g *guard) learn(limits drive.Limits, known counted) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	has := counted{g.of.Last(), g.of.Count()}
	all := has.and(known)
	if all == has {
		return nil
	}
	of, err := drive.ResumeGuard(limits, all.last, all.count)
	if err == nil {
		g.of = *of
	}
	return err
}

// guard returns the guard of a party of a job, which has counted at least what is known. It fails
// with drive.ErrState if the job has no such rounds.
func (s *sidecar) guard(
	settled *declared.Settled, identity ed25519.PrivateKey, known counted,
) (*guard, error) {
	limits, err := settled.Limits(identity.Public())
	if err != nil {
		return nil, err
	}
	of, err := drive.NewGuard(limits, 0)
	if err != nil {
		return nil, err
	}
	name := account{job: settled.Digest()}
	copy(name.party[:], identity[ed25519.SeedSize:])
	s.mutex.Lock()
	g, found := s.guards[name]
	full := !found && len(s.guards) >= maxGuards
	if !found && !full {
		if s.guards == nil {
			s.guards = make(map[account]*guard)
		}
		g = &guard{of: *of}
		s.guards[name] = g
	}
	s.mutex.Unlock()
	if full {
		return nil, requestError("start a new sidecar, and load saved states there",
			"the submissions of %d parties are counted", maxGuards)
	}
	return g, g.learn(limits, known)
}

// checkSpent returns the counts for the rounds that, according to the caller, a party may have
// submitted in.
func checkSpent(settled *declared.Settled, round uint64) (counted, error) {
	if most := settled.Rounds(); round > uint64(most) {
		return counted{}, fieldError("spent", "", "%d is outside 0 to the job's %d rounds", round, most)
	}
	return spent(settled, round), nil
}
