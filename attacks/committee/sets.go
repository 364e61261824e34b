package committee

import "slices"

// all are the members.
var all = []int{0, 1, 2, 3, 4, 5, 6}

// runSets has members add up a set whose sum is one party's key.
func runSets(r *runner) error {
	const victim = 1
	for _, c := range []struct {
		name  string
		lacks defence
		try   func(w *world, dealings []*dealing) (key []int64, ok bool, err error)
	}{
		{"one party in the sum", survivors, func(w *world, d []*dealing) ([]int64, bool, error) {
			return w.sum(all, d[victim:victim+1])
		}},
		{"parts in others' names", signatures, func(w *world, d []*dealing) ([]int64, bool, error) {
			// The server deals zeros in the names of two parties, and signs with its own key.
			set := []*dealing{nil, d[victim], nil}
			for _, at := range []int{0, 2} {
				var err error
				if set[at], err = w.zero(at, w.partyKeys[parties-1]); err != nil {
					return nil, false, err
				}
			}
			return w.sum(all, set)
		}},
		{"two sets, one after the other", oneAnswer | erasing,
			func(w *world, d []*dealing) ([]int64, bool, error) {
				return w.twoSets(victim, d, all, all)
			}},
		{"two sets, to two halves", quorum, func(w *world, d []*dealing) ([]int64, bool, error) {
			return w.twoSets(victim, d, []int{0, 1, 2, honest}, []int{3, 4, 5, honest})
		}},
	} {
		var found [2]bool
		for i, real := range []bool{false, true} {
			w, err := newWorld(r.o.Seed, c.lacks, real)
			if err != nil {
				return err
			}
			var dealings []*dealing
			for party := range parties {
				d, err := w.submit(party)
				if err != nil {
					return err
				}
				dealings = append(dealings, d)
			}
			key, ok, err := c.try(w, dealings)
			if err != nil {
				return err
			}
			found[i] = ok && slices.Equal(w.read(dealings[victim].masked, key), w.inputs[victim])
		}
		r.counts(c.name, "inputs recovered exactly", found[0], found[1])
	}
	return nil
}

// twoSets asks for the keys of everybody and of everybody but the victim.
func (w *world) twoSets(victim int, d []*dealing, first, second []int) ([]int64, bool, error) {
	with, ok, err := w.sum(first, d)
	if err != nil || !ok {
		return nil, ok, err
	}
	without, ok, err := w.sum(second, slices.Delete(slices.Clone(d), victim, victim+1))
	if err != nil || !ok {
		return nil, ok, err
	}
	return minus(with, without), true, nil
}

// runTwice has an honest party's key counted twice in a sum: once in each of two batches,
// or by a colluder that signs a copy of its boxes.
func runTwice(r *runner) error {
	const victim = 1
	var counted [2]bool
	for i, real := range []bool{false, true} {
		w, err := newWorld(r.o.Seed, once, real)
		if err != nil {
			return err
		}
		var dealings []*dealing
		for party := range 3 {
			d, err := w.submit(party)
			if err != nil {
				return err
			}
			dealings = append(dealings, d)
		}
		twice, ok, err := w.sum(all, dealings, dealings[victim:victim+1])
		if err != nil {
			return err
		}
		if counted[i] = ok; ok {
			// y of the victim fits half of what is left without the others.
			total := make([]int64, length)
			for _, d := range append(dealings, dealings[victim]) {
				for k, v := range w.inputs[d.party] {
					total[k] += v
				}
			}
			masked := w.add(append(slices.Clone(dealings), dealings[victim])...)
			counted[i] = slices.Equal(w.read(masked, twice), total)
		}
	}
	r.counts("a party in two batches", "inputs counted twice", counted[0], counted[1])

	for i, lacks := range []defence{named, 0} {
		w, err := newWorld(r.o.Seed, lacks, lacks == 0)
		if err != nil {
			return err
		}
		copied, ok, err := w.copied(lacks, victim)
		if err != nil {
			return err
		}
		counted[i] = ok && copied
	}
	r.counts("a copy of its boxes", "inputs counted twice", counted[0], counted[1])
	return nil
}

// copied has the last party send the victim's boxes and leaves as its own, and reports
// whether the sum of keys has the victim's twice.
func (w *world) copied(lacks defence, victim int) (bool, bool, error) {
	var set []*dealing
	for party := range 3 {
		d, err := w.submit(party)
		if err != nil {
			return false, false, err
		}
		if lacks != 0 { // as parties would deal, if boxes named nobody
			key := make([]int64, degree)
			if party == victim {
				key = victimKey()
			}
			parts, err := w.split(key)
			if err != nil {
				return false, false, err
			}
			if d, err = w.deal(lacks, party, d.masked, parts, w.partyKeys[party]); err != nil {
				return false, false, err
			}
		}
		set = append(set, d)
	}
	last := inName(set[victim], parties-1)
	if err := w.sign(last, w.partyKeys[parties-1]); err != nil {
		return false, false, err
	}
	key, ok, err := w.sum(all, append(set, last))
	if err != nil || !ok {
		return false, ok, err
	}
	want := victimKey()
	for i := range want {
		want[i] *= 2
	}
	return slices.Equal(key, want), true, nil
}

// inName is a copy of a dealing in another party's name.
func inName(d *dealing, party int) *dealing {
	out := *d
	out.party = party
	return &out
}

// victimKey is a key to be found again.
func victimKey() []int64 {
	key := make([]int64, degree)
	for i := range key {
		key[i] = int64(i%13) - 6
	}
	return key
}
