package committee

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/crook"
)

// drawn is a round in which members' noise is to be drawn, with a member that has its noise ready:
// all of it in one direction, with a proof that holds.
type drawn struct {
	w       *world
	before  []byte   // the server, before the cheat's candidates
	honest  []byte   // its candidates, as an honest member's, and
	seeds   [][]byte // theirs
	message []byte   // its noise
	digest  []byte   // what commits to that
}

const (
	drawnOf   = 16 // candidates
	drawer    = parties + members - 1
	seedBytes = 32
)

var drawnKey = keyexchange.SealKey{1}

func newDrawn(seed uint64) (*drawn, error) {
	w, err := newWorld(seed, 0, true)
	if err != nil {
		return nil, err
	}
	terms := &w.config.Terms
	terms.CommitteeNoise, terms.Norm = true, normBound
	law, err := noise.DiscreteGaussian(big.NewRat(400*int64(members-2*terms.Faults), 1))
	if err != nil {
		return nil, err
	}
	terms.Noise = law
	if w.digest, err = w.config.Digest(); err != nil {
		return nil, err
	}
	if w.figures, err = w.config.Parameters(); err != nil {
		return nil, err
	}
	server, err := oneshot.NewServer(w.config, 0)
	if err != nil {
		return nil, err
	}
	var all []*oneshot.Member
	invite := server.Invite()
	own := [32]byte{byte(seed), 5}
	for k, key := range w.memberKeys {
		var random io.Reader
		if k == members-1 {
			random = rand.NewChaCha8(own)
		}
		m, err := oneshot.NewMember(w.config, key, random)
		if err != nil {
			return nil, err
		}
		answer, err := m.Receive(invite)
		if err != nil {
			return nil, err
		}
		if err := server.Receive(answer); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if w.opening, err = server.Open([]byte(model)); err != nil {
		return nil, err
	}
	d := &drawn{w: w}
	for k, m := range all {
		if d.honest, err = m.Receive(w.opening); err != nil {
			return nil, err
		}
		if k == members-1 {
			break
		}
		if err := server.Receive(d.honest); err != nil {
			return nil, err
		}
	}
	if d.before, err = server.Save(&drawnKey); err != nil {
		return nil, err
	}
	again := rand.NewChaCha8(own)
	drew := make([]byte, seedBytes*(1+drawnOf)) // its round's key comes first
	if _, err := io.ReadFull(again, drew); err != nil {
		return nil, err
	}
	d.seeds = slices.Collect(slices.Chunk(drew[seedBytes:], seedBytes))

	cheat := crook.Dealer{Config: w.config, Key: w.memberKeys[members-1], Party: drawer,
		Vector: []int64{60, 60, 60, 60}}
	if d.message, err = cheat.Submit(w.opening); err != nil {
		return nil, err
	}
	context, body := d.honest[2:34], d.message[wire.HeaderSize:]
	size := (length*w.figures.ModulusBits + 7) / 8
	d.digest = h(labels.OneshotCandidate, context, u32(drawer),
		h(labels.OneshotMasked, body[:size]), body[size:][:32])
	return d, nil
}

// dealt returns which candidate a coin draws.
func (d *drawn) dealt(coin []byte) int {
	context := d.honest[2:34]
	return int(h(labels.OneshotDrawn, context, u32(drawer), coin)[0]) % drawnOf
}

// try has the cheat commit to its noise in a place, and deal it under a coin; it passes, or the
// member is named.
func (d *drawn) try(at int, coin []byte) (passes bool, err error) {
	server, err := oneshot.LoadServer(d.w.config, 0, &drawnKey, d.before)
	if err != nil {
		return false, err
	}
	candidates := bytes.Clone(d.honest)
	copy(candidates[wire.HeaderSize+32*at:], d.digest)
	if err := server.Receive(candidates); err != nil {
		return false, err
	}
	told, err := server.Coin(bytes.NewReader(coin))
	if err != nil {
		return false, err
	}
	seeds := slices.Clone(d.seeds)
	seeds = slices.Delete(seeds, d.dealt(coin), d.dealt(coin)+1)
	message := slices.Concat(d.message, slices.Concat(seeds...), make([]byte, 64))
	message, err = crook.SignDrawn(d.w.config, d.w.memberKeys[members-1], message, candidates, told)
	if err != nil {
		return false, err
	}
	err = server.Receive(message)
	var named *oneshot.MemberError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, oneshot.ErrAudit) && errors.As(err, &named) && named.Member == members-1 &&
		named.Evidence.Verify() == nil:
		return false, nil
	}
	return false, fmt.Errorf("noise that was not drawn: %w", err)
}

// runNormDrawn has a member deal noise in a direction of its own. Where it knows the coin when it
// commits to its candidates it always can; where the coin comes after them, once in 16 times.
func runNormDrawn(r *runner) error {
	d, err := newDrawn(r.o.Seed)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(r.o.Seed, 6))
	toss := func() []byte {
		coin := make([]byte, 32)
		for i := range coin {
			coin[i] = byte(random.Uint32())
		}
		return coin
	}
	const known, tries = 4, 32
	var passed [2]int
	for range known {
		coin := toss()
		ok, err := d.try(d.dealt(coin), coin)
		if err != nil {
			return err
		}
		passed[0] += int(one(ok))
	}
	for range tries {
		at := random.IntN(drawnOf)
		ok, err := d.try(at, toss())
		if err != nil {
			return err
		}
		passed[1] += int(one(ok))
	}
	// More than 0.4 of 32 tries have a probability below 10^-7.
	r.rows = append(r.rows, attacks.Row{Case: "noise of a member in one direction",
		Metric:     "rounds with it",
		Undefended: attacks.Exactly(float64(passed[0])/known, known, 1),
		Defended:   attacks.Proportion(passed[1], tries, 0, 0.4),
		Note: "without: a coin known before the candidates; with: named in all other rounds, with " +
			"evidence that convinces others"})
	return nil
}
