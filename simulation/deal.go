package simulation

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/learning"
)

// source is a stream of randomness for one purpose, party and round.
func (r *timed) source(purpose string, party int) *rand.ChaCha8 {
	h := fnv.New128a()
	fmt.Fprintf(h, "%d\x00%s\x00%d\x00%d", r.seed, purpose, r.round, party)
	var seed [32]byte
	h.Sum(seed[:0])
	binary.BigEndian.PutUint64(seed[16:], r.seed)
	binary.BigEndian.PutUint64(seed[24:], uint64(r.round)<<32|uint64(uint32(party)))
	return rand.NewChaCha8(seed)
}

// The ways to deal rows by round, other than "fixed".
const (
	drawNew     = "new"
	drawGrowing = "growing"
	drawAnew    = "anew"
)

// Rows of a party if nothing says how many: this number of a census, of images all that there are.
const someRows = 200

// images are the sets whose rows are all dealt.
var images = []string{"digits", "mnist", "fashion-mnist"}

// deal gives every party its rows.
func (r *timed) deal() error {
	if dealt := r.course.Rows.Parties; r.World.Data.Split != "" || r.course.Train == nil {
		if len(dealt) != len(r.parties) {
			return r.Mistake("world.data.split", "deal rows to each party", "%d of %d parties have rows",
				len(dealt), len(r.parties))
		}
		for i, p := range r.parties {
			p.fixed = dealt[i]
		}
		return nil
	}
	data, have, rounds := &r.World.Data, r.course.Train.Len(), 1
	if data.Draw == drawNew || data.Draw == drawGrowing {
		rounds = r.Rounds
	}
	if data.Rows == 0 {
		data.Rows = someRows
		if data.All || slices.Contains(images, data.Set) {
			data.Rows = max(1, have/len(r.parties)/rounds)
		}
	}
	need := int64(0)
	for _, k := range r.kinds {
		if k.Rows == 0 {
			k.Rows = data.Rows
		} else if data.Draw == drawAnew && k.Rows > have {
			return r.tooManyRows(k.path("rows"), k.Rows)
		}
		need += int64(k.count) * int64(k.Rows) * int64(rounds)
	}
	switch {
	case data.Draw == drawAnew && data.Rows > have:
		return r.tooManyRows("world.data.rows", data.Rows)
	case data.Draw == drawAnew:
		return nil
	case need > int64(have):
		advice := `write fewer rows, parties or rounds, or world.data.draw = "anew"`
		if most := int(float64(have) * float64(data.Rows) / float64(need)); most > 0 {
			advice = fmt.Sprintf(`write up to %d, fewer parties or rounds, or world.data.draw = "anew"`,
				most)
		}
		return r.Mistake("world.data.rows", advice, "all parties and rounds together take %d rows, and "+
			"there are %d to train on", need, have)
	}
	order := rand.New(rand.NewPCG(r.seed, 1)).Perm(r.course.Train.Len())
	for _, p := range r.parties {
		p.rows = order[:p.Rows*rounds]
		order = order[p.Rows*rounds:]
	}
	return nil
}

func (r *timed) tooManyRows(path string, rows int) error {
	return r.Mistake(path, fmt.Sprintf("write up to %d", r.course.Train.Len()),
		"%d rows are more than there are to train on", rows)
}

// rowsNow returns how many rows a party trains on in this round.
func (r *timed) rowsNow(p *party) int {
	switch {
	case p.fixed != nil:
		return p.fixed.Len()
	case r.World.Data.Draw == drawGrowing:
		return p.Rows * max(1, r.round)
	}
	return p.Rows
}

// rowsOf are the rows that a party trains on in this round.
func (r *timed) rowsOf(p *party) (*learning.Dataset, error) {
	k := p.Rows
	switch r.World.Data.Draw {
	case drawAnew:
		rng := rand.New(r.source("rows", p.index))
		rows := make([]int, k)
		for i := range rows {
			rows[i] = rng.IntN(r.course.Train.Len())
		}
		return r.course.Train.Subset(rows)
	case drawNew:
		return r.course.Train.Subset(p.rows[k*(r.round-1) : k*r.round])
	case drawGrowing:
		return r.course.Train.Subset(p.rows[:k*r.round])
	}
	if p.fixed == nil {
		var err error
		if p.fixed, err = r.course.Train.Subset(p.rows); err != nil {
			return nil, err
		}
	}
	return p.fixed, nil
}
