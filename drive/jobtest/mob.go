package jobtest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// Mob is a Council in which everything that can go wrong does, as a seed chooses, until from some
// time on nothing does.
type Mob struct {
	*Council
	choices Choices
	until   drive.Time // faults happen
	liars   []int      // members
	spoiler int        // a party whose covers do not open; −1: none
	crook   int        // a party that lies otherwise; −1: none
	setBack bool
	old     []any
	deaths  int
	rate    int
}

// MobOutcome counts what came of a Mob.
type MobOutcome struct{ Sums, Lost, Deaths, Saves int }

// pick returns a choice from 0 to n−1.
func (m *Mob) pick(n int) int { return m.choices.IntN(n) }

// NewMob makes a world with its faults.
func NewMob(tb testing.TB, seed uint64, choices Choices) *Mob {
	tb.Helper()
	m := &Mob{choices: choices, spoiler: -1, crook: -1}
	o := CouncilOptions{Members: 4, Faults: 1, Parties: 3 + m.pick(4), Rounds: uint64(1 + m.pick(3))}
	if m.pick(4) == 0 {
		o.Members, o.Faults = 7, 2
	}
	o.Survivors = 2 + m.pick(o.Parties-2)
	if o.Survivors > 2 {
		o.Colluders = m.pick(2)
	}
	o.Covered = m.pick(2) == 0
	o.Away = drive.Time(m.pick(2)*m.pick(5)) * drive.Second
	o.Batch = m.pick(4)
	if m.pick(3) == 0 {
		o.Buffer, o.Stale = o.Survivors+m.pick(o.Parties-o.Survivors+1), 1+m.pick(3)
		o.Submissions = uint64(m.pick(3)) // 0: one a round
	}
	o.MembersNoise = m.pick(3) == 0
	slow := drive.Time(1+m.pick(50)) * drive.Millisecond
	o.Delay = func() drive.Time { return 1 + drive.Time(m.choices.IntN(int(slow))) }
	work := drive.Time(1+m.pick(2000)) * drive.Millisecond
	o.Work = func() drive.Time { return 1 + drive.Time(m.choices.IntN(int(work))) }
	m.Council = NewCouncil(tb, seed, o)
	m.until = drive.Time(m.pick(20)) * drive.Second
	m.rate = 1 + m.pick(60)
	m.setBack = m.pick(6) == 0
	for len(m.liars) < o.Faults && m.pick(3) == 0 {
		if k := m.pick(o.Members); !slices.Contains(m.liars, k) {
			m.liars = append(m.liars, k)
			m.lieMember(m.Members[k])
		}
	}
	if o.Covered && o.Parties > o.Survivors && m.pick(4) == 0 {
		m.spoiler = m.pick(o.Parties)
		m.Parties[m.spoiler].Rewrite = BadCover(m.Council, m.spoiler)
	}
	if m.spoiler < 0 && m.pick(3) == 0 {
		m.crook = m.pick(o.Parties)
		m.lieParty(m.Parties[m.crook])
	}
	for _, s := range slices.Concat(m.Members, m.Parties) {
		s.Die = func(string) bool { return m.fault(func() { m.After(m.span(3), s.Start) }) }
	}
	m.Hub.Die = func(string) bool {
		return m.fault(func() { m.After(m.span(3), m.Hub.Start) })
	}
	return m
}

// span returns a time below the given number of seconds.
func (m *Mob) span(seconds int) drive.Time {
	return drive.Time(m.choices.IntN(seconds * int(drive.Second)))
}

func (m *Mob) fault(then func()) bool {
	if m.now > m.until || m.pick(m.rate*20) != 0 {
		return false
	}
	m.deaths++
	then()
	return true
}

// break has connections end, and programs have nothing.
func (m *Mob) disturb() {
	if m.now > m.until {
		return
	}
	seats := slices.Concat(m.Members, m.Parties)
	s := seats[m.pick(len(seats))]
	switch m.pick(8) {
	case 0, 1, 2:
		s.Cut()
	case 3:
		s.Kill()
		m.After(m.span(5), s.Start)
	case 4:
		m.Hub.Kill()
		m.After(m.span(5), m.Hub.Start)
	case 5:
		if m.setBack {
			m.old = append(m.old, m.Hub.Remember())
		}
	case 6:
		if m.setBack && len(m.old) > 0 {
			m.Note("the server is set back")
			m.Hub.SetBack(m.old[m.pick(len(m.old))])
		}
	default:
		p := m.Parties[m.pick(len(m.Parties))]
		p.NoVector = func(uint64) bool { return m.now < m.until && m.pick(2) == 0 }
	}
	m.After(m.span(2), m.disturb)
}

// Play plays the job to its end, and checks that it comes to one.
func (m *Mob) Play() MobOutcome {
	m.tb.Helper()
	for _, s := range slices.Concat(m.Members, m.Parties) {
		m.After(m.span(2), s.Start)
	}
	m.After(m.span(2), m.disturb)
	deadline := m.until + drive.Time(m.options.Rounds+4)*8*m.options.StepTime
	for steps := 0; !m.Ended(); steps++ {
		if steps > 400_000 || m.now > deadline || !m.Step() {
			if m.behind() {
				return MobOutcome{len(m.Sums), int(m.lost), m.deaths, m.Hub.Saves}
			}
			m.Fatal("after %d steps it has not ended: %+v", steps, m.Hub.status())
		}
		if m.Hub.status().Paused {
			m.Hub.drive.Order(m.now, drive.Order{Do: drive.Resume, Why: "the cause is mended"})
			m.Hub.proceed()
		}
	}
	s := m.Hub.status()
	if got := uint64(len(m.Sums)); !m.setBack && got+s.Lost != s.Round {
		m.Fatal("%d sums and %d lost of %d rounds", got, s.Lost, s.Round)
	}
	honest := len(m.liars) == 0 && m.spoiler < 0 && m.crook < 0
	if m.deaths == 0 && m.until == 0 && honest && m.lost > 0 {
		m.Fatal("%d rounds lost", m.lost)
	}
	m.checkCounts()
	for _, n := range m.Notices {
		if n.Kind == drive.Spoiler && n.Party != m.spoiler {
			m.Fatal("party %d is named in round %d, and is honest", n.Party, n.Round)
		}
	}
	return MobOutcome{len(m.Sums), int(m.lost), m.deaths, m.Hub.Saves}
}

// behind reports whether the server may wait for ever, since it was set back to an older state: no
// more members than may lie know of a later round, so that it does not believe them; they answer no
// round twice; and with those that do lie too few are left for one.
func (m *Mob) behind() bool {
	if !m.setBack {
		return false
	}
	gone, ahead := 0, 0
	for k, s := range m.Members {
		later := s.alive() && s.drive.Hello().Told > m.Hub.status().Round
		if later {
			ahead++
		}
		if later || slices.Contains(m.liars, k) {
			gone++
		}
	}
	return ahead > 0 && ahead <= m.options.Faults && gone > m.options.Faults
}

// checkCounts: no party is in more sums than it has counted, nor than it has agreed to.
func (m *Mob) checkCounts() {
	in := make(map[int]uint64)
	for _, parties := range m.Sums {
		for _, i := range parties {
			in[i]++
		}
	}
	for _, i := range slices.Sorted(maps.Keys(in)) {
		p, sums := m.Parties[i], in[i]
		if o := m.options; o.Submissions > 0 && sums > o.Submissions {
			m.Fatal("party %d is in %d sums, and agreed to %d", i, sums, o.Submissions)
		}
		if p.alive() {
			if g := p.drive.Guard(); g.Count() < sums {
				m.Fatal("party %d is in %d sums, and has counted %d", i, sums, g.Count())
			}
		}
	}
}

// BadCover makes the submissions of a party such that their covers do not open: they are signed by
// it as they should be, and bound to the key of another cover (SPEC-ONESHOT.md §§5.3, 5.5, 6).
func BadCover(w *Council, party int) func(b []byte) []byte {
	figures, err := w.sums.Parameters()
	if err != nil {
		w.tb.Fatal(err)
	}
	depth := 0
	for 1<<depth < w.options.Members {
		depth++
	}
	const head, digest, key, tag = 46, 32, 32, 16
	box := key + digest*(figures.Polynomials+2) + tag
	extra, label := digest, labels.OneshotParty // of a submission, after what is masked
	if w.options.Stale > 0 {
		extra, label = digest+8, labels.OneshotStale
	}
	return func(b []byte) []byte {
		b = slices.Clone(b)
		at := len(b) - ed25519.SignatureSize - w.options.Members*(digest+box) - extra
		if at < head || len(w.Hub.drive.Status().Opened) != w.options.Members {
			return b // somebody has no key
		}
		b[at] ^= 1
		level := make([][]byte, 1<<depth)
		for k := range level {
			level[k] = make([]byte, digest)
			if k < w.options.Members {
				copy(level[k], b[at+extra+digest*k:])
			}
		}
		hash := func(label string, parts ...[]byte) []byte {
			h := sha256.Sum256(slices.Concat(append([][]byte{[]byte(label)},
				parts...)...))
			return h[:]
		}
		for ; len(level) > 1; level = level[:len(level)/2] {
			for k := range len(level) / 2 {
				level[k] = hash(labels.OneshotNode, level[2*k], level[2*k+1])
			}
		}
		context, index := b[2:2+digest], binary.BigEndian.AppendUint32(nil, uint32(party))
		signed := slices.Concat(context, index, level[0], hash(labels.OneshotMasked, b[head:at]),
			b[at:at+extra])
		signature, err := keyexchange.Sign(identities()[party], label, signed)
		if err != nil {
			w.tb.Fatal(err)
		}
		return append(b[:len(b)-ed25519.SignatureSize], signature[:]...)
	}
}

// Uploads returns how often each submission was sent, at most and in all.
func (w *Council) Uploads() (most, all int) {
	for _, n := range w.uploads {
		most, all = max(most, n), all+n
	}
	return most, all
}
