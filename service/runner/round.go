package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/record"
)

// This file carries out a decision, and reports it to people.

// settings returns what drive needs to know of the federation.
func (r *Runner) settings() (drive.Settings, error) {
	c, err := r.Federation.Settled.Lead(job.Timing{Away: r.Grace,
		At: func(t time.Time) drive.Time { return drive.Time(t.UnixNano()) }})
	c.Broadcast, c.Stored = r.digest, r.stored
	return c, err
}

// digest makes the broadcast of a round, and returns its digest: with a committee that
// which the opening contains.
func (r *Runner) digest(round uint64, fresh [32]byte) (digest [32]byte, err error) {
	b, err := r.cast(round, fresh)
	if err != nil {
		return digest, err
	}
	h := protocol.NewBroadcastHash()
	if r.sums != nil {
		h = oneshot.NewBroadcastHash()
	}
	_, err = h.Write(b)
	return [32]byte(h.Sum(nil)), err
}

// applied is the next model that a sum gave.
type applied struct {
	round    uint64
	model    []float64
	metric   *job.Metric
	accuracy float64
	digest   string // of the model in the record
	released chain.Hash
	size     int
}

// apply makes the next model from a sum, while the runner goes on.
func (r *Runner) apply(a *drive.Apply) (adopt func() (end string), err error) {
	var broadcast []byte
	var model []float64
	var done func(err error)
	err = r.host.With(context.Background(), operator, func(_ drive.Lead, now drive.Time) (err error) {
		broadcast, err = r.begin()
		model, done = r.model, r.tracing.sum(now, len(a.Parties))
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { done(err) }()
	var sum [][]uint64
	if r.sums != nil {
		sum = masking.FromSigned(r.Federation.Settled.Layout(), a.Values)
	} else {
		sum = a.Sum.Values()
	}
	if r.Summed != nil {
		r.Summed(int(a.Round), a.Parties, sum)
	}
	out := applied{round: a.Round}
	out.model, out.metric, err = r.Federation.Next(r.optimizer, int(a.Round), model, broadcast, sum,
		a.Parties)
	if err != nil {
		return nil, err
	}
	if r.Judge != nil {
		out.accuracy = r.Judge(out.model)
	}
	out.released = receipt.Released(out.model)
	kept, digest := modelState{out.model, r.optimizer.Moments()}, sha256.New()
	_, err = kept.WriteTo(digest)
	out.digest, out.size = hex.EncodeToString(digest.Sum(nil)), kept.size()
	return func() string {
		r.adopt(out)
		return ""
	}, err
}

// adopt takes the next model, unless the federation was ended meanwhile.
func (r *Runner) adopt(a applied) {
	if at := r.drive.Status(); at.Stage != drive.Applying || at.Round != a.round {
		return
	}
	r.model, r.made = a.model, a
	r.spent, r.modelRef = append(r.spent, r.modelRef), nil
}

// evidenceOf returns the evidence that proves cheating to others, if a notice has it, with the kind
// and name of the cheat.
func (r *Runner) evidenceOf(n drive.Notice) (evidence *oneshot.Evidence, kind, name string) {
	var party *oneshot.PartyError
	var member *oneshot.MemberError
	switch {
	case errors.As(n.Err, &party):
		return party.Evidence, "party", party.Name
	case errors.As(n.Err, &member):
		return member.Evidence, "member", member.Name
	}
	return nil, "", ""
}

// keepEvidence keeps the evidence of a notice, if it has any, and says where.
func (r *Runner) keepEvidence(n drive.Notice) string {
	evidence, kind, name := r.evidenceOf(n)
	if r.Evidence == nil || evidence == nil {
		return ""
	}
	b, err := evidence.AppendBinary(nil)
	where := ""
	if err == nil {
		where, err = r.Evidence(n.Round, fmt.Sprint(kind, "-", n.Party), b)
	}
	if err != nil {
		r.Log.Error("evidence is not kept", kind, name, "round", n.Round, "error", err)
		return fmt.Sprintf("; the evidence is not kept: %v", err)
	}
	r.Log.Warn("a "+kind+" cheated", kind, name, "round", n.Round, "evidence", where)
	return "; hushsum verify " + where
}

// note remembers what is decided, for people, and returns the lines for the audit log once that is
// recorded.
func (r *Runner) note(notices []drive.Notice) (lines []record.Line) {
	for _, n := range notices {
		line := record.Line{Round: int(n.Round), Parties: len(n.Parties)}
		if n.Err != nil {
			line.Note = n.Err.Error()
		}
		switch n.Kind {
		case drive.Forms:
			line.Event = "a session forms"
		case drive.Following:
			line.Event = "a session took over"
		case drive.Begun:
			line.Event, r.why, r.untroubled = "begun", "", r.clock.standstill()
			if n.Member { // who will submit is not known yet
				line.Parties, line.Note = 0, fmt.Sprintf("%d members have keys", len(n.Parties))
			}
			line.Digest, line.Size = digestOf(r.broadcast), len(r.broadcast)
			r.among = n.Parties
		case drive.Unbegun:
			r.why = fmt.Sprintf("round %d could not begin: %v", n.Round, n.Err)
			continue
		case drive.Summed:
			line.Event, line.Spent = "summed", r.paid().Own
			line.Digest, line.Size = r.made.digest, r.made.size
			r.past(n, Past{Parties: len(n.Parties), Metric: r.made.metric, Accuracy: r.made.accuracy,
				Digest: line.Digest})
		case drive.Lost:
			line.Event = eventLost
			if errors.Is(n.Err, protocol.ErrTooFew) {
				line.Note += r.notAmong()
			}
			outage := r.clock.standstill() > r.untroubled
			if outage {
				line.Note += "; " + Away
				r.outages++
			}
			r.past(n, Past{Lost: line.Note, Outage: outage})
			r.why = fmt.Sprintf("round %d was lost: %s", n.Round, line.Note)
		case drive.Spoiler:
			line.Event, line.Parties = "left out", 1
			line.Note = r.names[n.Party] + " spoilt a round, or tried to" + r.keepEvidence(n)
		case drive.Liar:
			_, _, name := r.evidenceOf(n)
			line.Event, line.Note = "lied", name+" dealt false noise"+r.keepEvidence(n)
		case drive.SetBack:
			line.Event, line.Spent = "set back", r.paid().Own
			line.Note = fmt.Sprintf("parties know of %d rounds that the record does not have", n.Skipped)
			if r.missing != nil {
				line.Note = fmt.Sprintf("%v; %d rounds in between are spent and lost", r.missing, n.Skipped)
				r.missing = nil
			}
			r.Log.Warn("the record was set back", "round", n.Round, "note", line.Note)
		case drive.Excluded, drive.Readmitted:
			line.Event, line.Parties = map[bool]string{true: "left out",
				false: "readmitted"}[n.Kind == drive.Excluded], 1
			line.Note = r.names[n.Party] + " " + line.Note
		case drive.Paused:
			line.Event, r.why = "paused", line.Note
		case drive.Resumed:
			line.Event, r.why = "resumed", ""
		case drive.Ended:
			line.Event, line.Spent = "ended", r.paid().Own
		case drive.Awaited, drive.Stall, drive.Short, drive.Dropped, drive.Formed:
			level := slog.LevelInfo
			if n.Kind == drive.Short {
				level = slog.LevelWarn
			}
			r.Log.LogAttrs(context.Background(), level, n.Kind.String(), given(
				slog.Uint64("session", n.Session), slog.Uint64("round", n.Round),
				slog.Int(plural(n), len(n.Parties)), slog.String("names", r.concerned(n)),
				slog.String("note", line.Note))...)
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// eventLost is the event of a round that was begun, and has no sum.
const eventLost = "lost"

// Away is in the note of a lost round in which the record was away.
const Away = "the record was away in this round"

// plural names what the Parties of a notice are.
func plural(n drive.Notice) string {
	if n.Member {
		return "members"
	}
	return "parties"
}

// concerned names who is waited for, or has let steps pass; it is empty in other notices.
func (r *Runner) concerned(n drive.Notice) string {
	var list []string
	name := func(i int) { list = append(list, r.nameOf(Peer{Index: i, Member: n.Member})) }
	switch n.Kind {
	case drive.Stall:
		name(n.Party)
	case drive.Awaited, drive.Short:
		for _, i := range n.Parties {
			name(i)
		}
	}
	return some(list)
}

// notAmong names the parties that the open round was not for, since they were not here when it
// began, or were left out. It is empty where a round is for some of them by design, and where
// another runner began the round.
func (r *Runner) notAmong() string {
	settled := r.Federation.Settled
	if r.among == nil || r.sums != nil || settled.PerRound() > 0 || settled.Buffer() > 0 {
		return ""
	}
	var names []string
	for i, name := range r.names {
		if !slices.Contains(r.among, i) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; not in the round from its start: " + some(names)
}

func digestOf(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}

// past remembers a round that is over.
func (r *Runner) past(n drive.Notice, p Past) {
	began := r.drive.Status().Begun
	p.Round, p.Session = int(n.Round), n.Session
	p.Began, p.Seconds = r.clock.shown(began), time.Duration(r.now()-began).Seconds()
	p.Share = r.share()
	r.tracing.end(r.now(), p.Parties, p.Lost)
	r.history = append(r.history, p)
	if more := len(r.history) - mostHistory; more > 0 {
		r.history = slices.Delete(r.history, 0, more)
	}
}

// paid bounds what any party has spent, of the budget and of the study; nil where there is none.
type paid struct {
	of     *accounting.Ledger // that it was computed from
	digest *chain.Hash        // of that
	Own    *accounting.Claim  `json:"own"`
	Study  *accounting.Claim  `json:"study"`
}

// json returns its text for the record.
func (p *paid) json() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic("runner: " + err.Error()) // of claims
	}
	return text
}

// paid is computed once per ledger, which changes after every round: people and programs ask again
// and again.
func (r *Runner) paid() *paid {
	ledger := r.drive.Ledger()
	if ledger == nil || r.spends.of == ledger {
		return &r.spends
	}
	r.spends = paid{of: ledger, digest: r.digestOfLedger(ledger)}
	if _, own, err := ledger.Most(r.names...); err == nil {
		r.spends.Own = &own
	}
	if study := r.Federation.Study(); study != nil {
		if err := study.Spends(ledger, r.names...); err == nil {
			r.spends.Study = study.Spent
		}
	}
	return &r.spends
}

// share is the part of the budget that is spent, 0 without one.
func (r *Runner) share() float64 {
	own, budget := r.paid().Own, r.Federation.Settled.Budget()
	if own == nil || budget == nil {
		return 0
	}
	share, err := own.Share(*budget)
	if err != nil {
		r.Log.Error("what was spent is not what the budget is about", "error", err.Error())
	}
	return share
}
