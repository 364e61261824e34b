package oneshot

import (
	"errors"
	"slices"
	"testing"
)

// TestLeagueFigures: whatever C, f and t are, t members cannot read a polynomial nor certify two
// sets with the help of nobody honest, and f members are missed nowhere.
func TestLeagueFigures(t *testing.T) {
	taken := 0
	for members := 4; members <= 40; members++ {
		for faults := 1; faults <= (members-1)/3; faults++ {
			for league := 0; league <= members; league++ {
				d, err := derive(6, members, &Terms{Length: 10, Bits: 10, MinSurvivors: 2,
					Faults: faults, InLeague: league})
				t1 := league
				if t1 == 0 {
					t1 = faults
				}
				if want := t1 >= faults && t1+2*faults < members; (err == nil) != want {
					t.Fatalf("%d members, f = %d, t = %d: %v", members, faults, league, err)
				} else if !want {
					continue
				}
				taken++
				there := members - faults
				if d.InLeague != t1 || d.Threshold != t1+d.Figures.PerPolynomial ||
					d.Answers != d.Threshold+faults || d.Answers > there || d.Quorum > there ||
					2*d.Quorum-members <= t1 {
					t.Fatalf("%d members, f = %d, t = %d: %+v", members, faults, league, d.Figures)
				}
				if t1 == faults && d.Answers > d.Quorum {
					t.Fatalf("%d members, f = %d: %d answers, quorum %d", members, faults, d.Answers, d.Quorum)
				}
			}
		}
	}
	if taken == 0 {
		t.Error("no configuration is valid")
	}
	hospitals := func(league int) Figures {
		return must(Parameters(8, 8, Terms{Length: 10, Bits: 10, MinSurvivors: 7, Colluders: 5, Faults: 1,
			InLeague: league}))
	}
	if f := hospitals(4); f.PerPolynomial != 2 || f.Threshold != 6 || f.Answers != 7 || f.Quorum != 7 {
		t.Errorf("t = 4: %+v", f)
	}
	if f := hospitals(5); f.PerPolynomial != 1 || f.Threshold != 6 || f.Answers != 7 || f.Quorum != 7 {
		t.Errorf("t = 5: %+v", f)
	}
}

// hospitals is a world of eight parties who are the committee too.
func hospitals(t Terms) *world {
	t.Length, t.Bits, t.MinSurvivors, t.Colluders, t.Faults, t.InLeague = 5, 12, 6, 4, 1, 4
	t.KEM, t.Norm, t.Noise = KEMX25519, 2000, gaussian(10, 2)
	roster, keys := people("hospital", 8)
	w := &world{config: &Config{Label: "hospitals", Roster: roster, Committee: roster, Terms: t},
		keys: keys, anew: true}
	w.server = must(NewServer(w.config, 0))
	for k := range keys {
		w.members = append(w.members, must(NewMember(w.config, keys[k], chacha(k))))
	}
	return w
}

// bare are values that the bound of hospitals allows.
func bare(values []int64) {
	for i := range values {
		values[i] = int64(i + 1)
	}
}

// TestHospitals: eight parties who are each other's committee take a sum of those whose proofs
// hold, without one that lies about its vector.
func TestHospitals(t *testing.T) {
	for _, terms := range []Terms{{}, {Covered: true}} {
		w := hospitals(terms)
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		var messages [][]byte
		for i := range 8 {
			d := dealer{values: bare}
			if i == 3 {
				d.vector = func(noisy []int64) { noisy[0] += 100_000 }
			}
			messages = append(messages, w.deal(i, d))
		}
		if !terms.Covered { // else it shows once covers are open
			var named *PartyError
			if err := w.server.Receive(messages[3]); !errors.As(err, &named) || named.Party != 3 {
				t.Fatalf("a vector beyond the bound: %v", err)
			}
			again := must(ParseEvidence(must(named.Evidence.AppendBinary(nil))))
			if err := again.Verify(); err != nil || again.Config().InLeague != 4 {
				t.Errorf("evidence: %v", err)
			}
			messages = slices.Delete(messages, 3, 4)
		}
		sum, err := w.run(messages)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range sum {
			if d := v - 7*int64(i+1); d > 13*30 || d < -13*30 { // 7 shares that deviate by 10
				t.Errorf("%+v: value %d is off by %d", terms, i, d)
			}
		}
	}
}

// TestHospitalsLie: of eight members with t = 4 one may send a wrong part, and then all others have
// to answer; with two wrong ones there is no sum.
func TestHospitalsLie(t *testing.T) {
	for _, liars := range []int{1, 2} {
		w := hospitals(Terms{})
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		for i := range 7 {
			if err := w.server.Receive(w.deal(i, dealer{values: bare})); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.deliver(nil); err != nil {
			t.Fatal(err)
		}
		_, err := w.finish(func(step, k int, answer []byte) []byte {
			if step == 1 && k < liars {
				answer = slices.Clone(answer)
				answer[bodyAt] ^= 1
			}
			return answer
		})
		if (err == nil) != (liars == 1) || err != nil && !errors.Is(err, ErrParts) {
			t.Errorf("%d liars: %v", liars, err)
		}
	}
}

// TestBothRoles: a member that is a party colludes as both.
func TestBothRoles(t *testing.T) {
	own := *hospitals(Terms{}).config
	own.Colluders = 3
	if _, err := own.Parameters(); !errors.Is(err, ErrConfig) {
		t.Errorf("four in league, and three colluders: %v", err)
	}
	if _, err := own.Promise(); !errors.Is(err, ErrConfig) {
		t.Errorf("promised: %v", err)
	}
	own.InLeague = 3
	if _, err := own.Parameters(); err != nil {
		t.Error(err)
	}
}
