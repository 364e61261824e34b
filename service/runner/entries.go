package runner

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/chain"
)

// This file says in the entry of a decision what it decides, to those who check the chain. Nobody's
// name is in it: parties and members are numbers, under salts that are erased with the names.

// kindsOf gives the kind of an entry by what is told with it, the first that applies; the entry
// says what follows from the others too.
var kindsOf = []struct {
	kind chain.Kind
	told []drive.NoticeKind
}{
	{chain.Sum, []drive.NoticeKind{drive.Summed}},
	{chain.Lost, []drive.NoticeKind{drive.Lost}},
	{chain.Damage, []drive.NoticeKind{drive.SetBack}},
	{chain.Order, []drive.NoticeKind{drive.Paused, drive.Resumed, drive.Excluded, drive.Readmitted,
		drive.Ended, drive.Spoiler}},
	{chain.Begin, []drive.NoticeKind{drive.Begun}},
	{chain.Keys, []drive.NoticeKind{drive.Forms, drive.Following}},
}

// kindOfStage gives the kind of an entry with which nothing is told, by the stage that it begins.
var kindOfStage = map[drive.Stage]chain.Kind{
	drive.Signing:   chain.Survivors,
	drive.Revealing: chain.Certificate,
}

// entry says what the decision that is recorded next decides.
func (r *Runner) entry() (e chain.Entry) {
	at := r.drive.Status()
	e.Session, e.Model = at.Session, r.modelRef.Object()
	if p := r.paid(); p.of != nil {
		e.Ledger = p.digest
		if p.Own != nil {
			e.Spent, _ = json.Marshal(p.Own) // it does not fail
		}
	}
	if at.Stage != r.recorded {
		e.Kind = kindOfStage[at.Stage]
	}
	told := make(map[drive.NoticeKind]drive.Notice)
	for _, n := range r.notices {
		told[n.Kind] = n
	}
	first := true
	for _, of := range kindsOf {
		for _, kind := range of.told {
			if n, is := told[kind]; is {
				if first {
					e.Kind, first = of.kind, false
				}
				r.tells(&e, n)
			}
		}
	}
	return e
}

// tells adds to an entry what its notice says.
func (r *Runner) tells(e *chain.Entry, n drive.Notice) {
	switch n.Kind {
	case drive.Begun, drive.Following:
		e.Members = r.commit(e, "members", n.Parties)
	case drive.Summed:
		e.Survivors = r.survivors(n)
		release := new(chain.Hash)
		if release.UnmarshalText([]byte(r.made.digest)) == nil {
			e.Release = release
		}
	case drive.Paused, drive.Resumed, drive.Excluded, drive.Readmitted, drive.Ended, drive.Spoiler:
		if e.Order != drive.Ended.String() { // which others cannot change
			e.Order = n.Kind.String()
		}
	}
}

// commit makes a commitment to parties or members, by their numbers; nil once the names are erased.
func (r *Runner) commit(e *chain.Entry, what string, numbers []int) *chain.Commitment {
	if r.salt == nil || len(numbers) == 0 {
		return nil
	}
	tree := new(chain.Tree)
	for _, i := range numbers {
		mac := hmac.New(sha256.New, r.salt)
		fmt.Fprintf(mac, "%s\n%d\n%d\n%d", what, e.Session, r.Hold.Round, i)
		if tree.Append(mac.Sum(nil)) != nil {
			return nil
		}
	}
	root, err := tree.Root(tree.Size())
	if err != nil {
		return nil
	}
	return &chain.Commitment{Count: tree.Size(), Root: root}
}

// digestOfLedger returns a salted digest of what all parties have spent, by name; nil once the
// names are gone.
func (r *Runner) digestOfLedger(ledger *accounting.Ledger) *chain.Hash {
	b, err := json.Marshal(ledger)
	if err != nil || r.salt == nil {
		return nil
	}
	mac := hmac.New(sha256.New, r.salt)
	mac.Write([]byte("ledger\n"))
	mac.Write(b)
	digest := chain.Hash(mac.Sum(nil))
	return &digest
}
