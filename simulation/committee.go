package simulation

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
)

// maxOneshot is the most parties of one-message sums: each makes its message.
const maxOneshot = 100_000

// committee is the server of one-message sums and what it leads.
type committee struct {
	lead
	sums    *oneshot.Config
	figures oneshot.Figures
	codec   *codec
	members []*councillor
	stored  map[string][]byte // batches of covered submissions
	todo    []*task           // of machines, in the order in which it was given

	given bool // all times are
	fresh []*party
	tell  bool          // members
	all   bool          // parties: a stage has begun
	free  time.Duration // when it has read what has arrived

	// Of the round.
	casts   map[uint64][32]byte // with sum.buffer, the digest of what each round began with
	steps   []Step
	entered time.Duration // the stage
	waited  []string
}

// newCommittee makes the server and the members of a job in which nobody is yet.
func (r *timed) newCommittee() (c *committee, err error) {
	c = &committee{lead: lead{run: r, place: r.World.Servers[0]}, stored: map[string][]byte{},
		casts: map[uint64][32]byte{}}
	c.as = c
	c.given = slices.ContainsFunc(r.kinds, func(k *kind) bool { return len(k.Compute) > 0 })
	roster := r.course.settled.Roster()
	if c.codec, err = r.newCodec(r.parties, job.Files{Roster: roster}); err != nil {
		return nil, err
	}
	r.use(c.codec)
	c.sums = c.codec.settled.Oneshot()
	if c.figures, err = c.sums.Parameters(); err != nil {
		return nil, r.Mistake("sum.protocol", "", "%v", err)
	}
	c.server, err = drive.NewLead(drive.Settings{
		Rounds: uint64(r.Rounds),
		Broadcast: func(round uint64, _ [32]byte) ([32]byte, error) {
			c.casts[round] = r.digest
			return r.digest, nil
		},
		StepTime:    drive.Time(r.Time.StepTime),
		BeginWith:   r.Time.BeginWith,
		Submissions: uint64(r.Parties.Participations),
		Sums:        c.sums,
		Buffer:      r.Sum.Buffer,
		Stored:      c.open,
	}, r.now())
	if err != nil {
		return nil, err
	}
	for _, p := range r.parties {
		p.sender.line = c.line(drive.Peer{Index: p.index}, p.Place)
	}
	for k, signer := range r.course.members {
		m := &councillor{committee: c, WorldMember: r.memberOf(k), name: memberName(k)}
		if m.machine, err = drive.NewPart(drive.PartSettings{Member: true,
			Sums: c.sums, Limits: drive.Limits{Rounds: uint64(r.Rounds)}, Identity: signer}); err != nil {
			return nil, err
		}
		m.line = c.line(drive.Peer{Index: k, Member: true}, m.Place)
		c.members = append(c.members, m)
	}
	return c, nil
}

// line returns the line of somebody in a place.
func (c *committee) line(peer drive.Peer, place string) line {
	return line{run: c.run, lead: c.server, proceed: c.proceed, peer: peer, from: place, to: c.place}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// memberOf returns what the world says of a member, with defaults.
func (w *federation) memberOf(k int) job.WorldMember {
	m := job.WorldMember{Slow: 1}
	own := memberName(k)
	for _, name := range []string{"member", own} {
		i := slices.IndexFunc(w.World.Member, func(m job.WorldMember) bool { return m.Name == name })
		if i >= 0 {
			m = w.World.Member[i]
		}
	}
	if m.Place == "" {
		m.Place = w.World.Servers[0]
	}
	m.Crash = withBack(m.Crash)
	return m
}

// open opens a batch that was put.
func (c *committee) open(name string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(c.stored[name])), nil
}

// keep stores what the server has to read again.
func (c *committee) keep() error {
	saved, err := c.server.Save(new(keyexchange.SealKey))
	if err != nil {
		return err
	}
	for _, o := range saved.Objects {
		if c.stored[o.Name] != nil || !strings.HasPrefix(o.Name, "batch") {
			continue
		}
		var b bytes.Buffer
		if _, err := o.Body.WriteTo(&b); err != nil {
			return err
		}
		c.stored[o.Name] = b.Bytes()
	}
	maps.DeleteFunc(c.stored, func(name string, _ []byte) bool {
		return !slices.Contains(saved.Needed, name)
	})
	return nil
}

// playCommittee plays a round of one-message sums.
func (r *timed) playCommittee(out *RoundResult) error {
	if r.council == nil {
		var err error
		if r.council, err = r.newCommittee(); err != nil {
			return err
		}
	}
	c := r.council
	c.next(r.active)
	if err := r.happen(c.stuck); err != nil {
		return err
	}
	c.passed(c.stage())
	r.tell(out, c.included())
	out.Steps, out.Waited = c.steps, c.waited
	for _, m := range c.members {
		out.Members = append(out.Members, MemberRound{m.name, m.Place, m.worked, m.sent, m.got})
	}
	if c.apply != nil {
		c.answer(r.lost)
		c.proceed()
	}
	return r.failure
}

// next has those come who are there in the scenario's next round, and those go who are not, and
// the job go on.
func (c *committee) next(active []*party) {
	r := c.run
	r.over, r.pending, r.lost, r.began = false, 0, nil, r.clock.Now()
	c.begun = c.server.Status().Stage >= drive.Submitting // one that waits for parties is still open
	c.steps, c.waited = nil, nil
	c.entered = r.clock.Now()
	if name := stages[c.server.Status().Stage]; name != "" {
		c.steps = []Step{{Name: name}}
	}
	there := make([]bool, len(r.parties))
	for _, p := range active {
		there[p.index] = !p.away(r.round)
	}
	for _, p := range r.parties {
		switch {
		case !p.sender.up && there[p.index]:
			p.sender.gone() // if it has not heard of that yet
			c.come(p)
		case !there[p.index]:
			p.sender.leaves()
		}
	}
	for _, m := range c.members {
		m.worked, m.sent, m.got = 0, 0, 0
		switch away := awayIn(m.Crash, r.round); {
		case !m.up && !away:
			m.gone()
			m.come()
		case m.up && away:
			m.leaves()
		}
	}
	c.lead.next()
	c.proceed()
}

// work stores what the server has to read again, and says how long it works to take the key off.
func (c *committee) work(was, is drive.Status, ready drive.Prepared) (time.Duration, error) {
	if ready.Save && c.sums.Covered {
		if err := c.keep(); err != nil {
			return 0, err
		}
	}
	if was.Stage != drive.Revealing || is.Stage != drive.Applying {
		return 0, nil
	}
	return c.summing(), nil
}

// decided takes orders.
func (c *committee) decided(orders drive.Orders, next bool) {
	if next {
		c.passed(c.stage())
	}
	c.tell, c.all = c.tell || orders.Tell, c.all || next
	for _, i := range orders.Upload {
		c.fresh = append(c.fresh, c.run.parties[i])
	}
}

// after makes the next model once the round is over.
func (c *committee) after() {
	if c.over() && !c.run.over && c.run.pending == 0 {
		c.conclude()
	}
}

// notice takes note of what has happened.
func (c *committee) notice(n drive.Notice) {
	name := func(i int) string {
		if n.Member {
			return c.members[i].name
		}
		return c.run.parties[i].name
	}
	wait := func(i int) {
		if !slices.Contains(c.waited, name(i)) && len(c.waited) < mostWaited {
			c.waited = append(c.waited, name(i))
		}
	}
	switch n.Kind {
	case drive.Begun:
		c.begun = true
	case drive.Awaited:
		for _, i := range n.Parties {
			if n.Member { // of thousands of parties that are on their way it says little
				wait(i)
			}
		}
	case drive.Stall:
		wait(n.Party)
	case drive.Spoiler:
		done := "spoilt"
		if n.Err != nil { // there is evidence
			done = "cheated in"
		}
		c.run.course.note("%s has %s round %d, and is left out", name(n.Party), done, n.Round)
	}
}

// mostWaited is the most parties that are reported as having been waited for in a round.
const mostWaited = 100

// The stages of a round, as they are told.
var stages = map[drive.Stage]string{
	drive.Announcing: "keys",
	drive.Submitting: "submissions",
	drive.Signing:    "signatures",
	drive.Revealing:  "parts",
	drive.Applying:   "model",
}

// stage names the last stage that has begun.
func (c *committee) stage() string {
	if len(c.steps) == 0 {
		return ""
	}
	return c.steps[len(c.steps)-1].Name
}

// passed notes that a stage is over, and the next has begun.
func (c *committee) passed(was string) {
	now, name := c.run.clock.Now(), stages[c.server.Status().Stage]
	if was != "" {
		c.steps[len(c.steps)-1].Took += now - c.entered
	}
	c.entered = now
	if name != "" && name != was {
		c.steps = append(c.steps, Step{Name: name})
	}
}

// summing returns how long the server works to take the key off.
func (c *committee) summing() time.Duration {
	if c.given {
		return 0
	}
	u, length := c.run.units, float64(c.sums.Length+c.figures.Spare)
	took := length * u.Unmask
	if c.sums.Covered { // all that was submitted is read again
		took += float64(c.run.received) * (u.Hash + u.Copy)
	}
	return seconds(took)
}

// reading is how long it works for a submission: it checks the signature and what that is over,
// and adds.
func (c *committee) reading(size int) time.Duration {
	if c.given {
		return 0
	}
	u, length := c.run.units, float64(c.sums.Length+c.figures.Spare)
	return seconds(u.Verify + float64(size)*(u.Hash+u.Copy) + 2*length*u.Add)
}

// pump sends what is new: to parties where a stage has begun, they have come, or may upload.
func (c *committee) pump() {
	if c.busy {
		return
	}
	if c.tell {
		for _, m := range c.members {
			m.pump()
		}
	}
	if c.all {
		c.fresh = append(c.fresh[:0], c.run.parties...)
	}
	for _, p := range c.fresh {
		c.send(p)
	}
	c.tell, c.all, c.fresh = false, false, c.fresh[:0]
}

var errMembers = errors.New("simulation: too few of the committee are there for a round")

// stuck returns why nothing happens any more before the round is over.
func (c *committee) stuck() error {
	switch stage := c.server.Status().Stage; {
	case stage == drive.Announcing:
		return errMembers
	case stage == drive.Submitting:
		return errFew
	}
	return errStuck
}

// conclude makes the next model of the round's sum, and sends it to the parties.
func (c *committee) conclude() {
	r := c.run
	if r.lost = c.lost; r.lost != nil {
		r.over = true
		return
	}
	sum := masking.FromSigned(c.codec.layout, c.apply.Values)
	total, err := c.codec.settled.Decode(c.casts[c.apply.Round], sum, len(c.apply.Parties))
	if err != nil {
		r.fail(err)
		return
	}
	in := c.included()
	if err := r.move([]job.Total{total}, c.apply.Parties); err != nil {
		r.fail(err)
		return
	}
	if c.buffered() { // who begins anew fetches it then
		for _, p := range r.parties {
			if in[p.index] {
				p.has, p.model, p.arrived = true, r.weights(), r.clock.Now()
			}
		}
		r.over = true
		return
	}
	for _, p := range r.parties {
		if p.sender.up && !p.downAt(r.round, atReveal) {
			r.sendModel(p, c.place, c.done, in[p.index])
		}
	}
	r.over = r.pending == 0
}

// included says who is in the sum.
func (c *committee) included() []bool {
	in := make([]bool, len(c.run.parties))
	if c.apply != nil {
		for _, i := range c.apply.Parties {
			in[i] = true
		}
	}
	return in
}
