package oneshot

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// A round needs as many signatures as the quorum, and opens with as many keys: with eight faults
// of forty, 24 parts are enough for a sum and 25 signatures for a certificate.
func TestKeysForQuorum(t *testing.T) {
	w := newWorld(3, 40, Terms{Length: 4, Bits: 8, MinSurvivors: 2, Faults: 8, PerPolynomial: 8})
	figures := must(w.config.Parameters())
	if figures.Answers != 24 || figures.Quorum != 25 || figures.Keys != 25 {
		t.Fatalf("%+v", figures)
	}
	if err := w.begin(func(k int) bool { return k < 24 }); !errors.Is(err, ErrTooFew) {
		t.Fatal(err)
	}
	if err := w.begin(func(k int) bool { return k < 25 }); err != nil {
		t.Fatal(err)
	}
}

// Members that lie about a cover have no honest party named, however few others have answered: the
// server waits for more parts, and the cover opens.
func TestLiarsNameNobody(t *testing.T) {
	const c, f = 40, 10
	w := newWorld(3, c, Terms{Length: 4, Bits: 8, MinSurvivors: 2, Faults: f, Covered: true})
	figures := must(w.config.Parameters())
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	var sent [][]byte
	for i := range 3 {
		m := must(w.submit(i))
		if err := w.server.Receive(m); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, m)
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	closing := must(w.server.Close())
	for _, m := range w.members {
		if err := w.server.Receive(must(m.Receive(closing))); err != nil {
			t.Fatal(err)
		}
	}
	certificate := must(w.server.Certificate())
	waited := 0
	for k, m := range w.members {
		part := must(m.Receive(certificate))
		if k < f { // another value of the first party's cover
			at := len(part) - 3*scalarSize
			lie := must(shamir.GenerateSecret(chacha(k)))
			copy(part[at:], lie[:])
		}
		if err := w.server.Receive(part); err != nil {
			t.Fatal(err)
		}
		if k+1 < figures.Answers {
			continue
		}
		err := w.server.Uncover(sent[0])
		if err == nil {
			t.Logf("%d parts are too few with %d lies, and %d are enough", k, f, k+1)
			break
		}
		waited++
		var blamed *PartyError
		if !errors.Is(err, ErrParts) || errors.As(err, &blamed) {
			t.Fatalf("with %d parts: %v", k+1, err)
		}
	}
	if waited == 0 {
		t.Fatal("the lies did nothing")
	}
	for _, m := range sent[1:] {
		if err := w.server.Uncover(m); err != nil {
			t.Fatal(err)
		}
	}
	w.near(t, must(w.server.Sum()), w.total(0, 1, 2))
}

// A server is made again from its state and the batch that is with the members; what waited for a
// batch is sent again. The state has no submission in it, and another batch does not fit.
func TestSaveParts(t *testing.T) {
	for _, covered := range []bool{false, true} {
		t.Run(fmt.Sprint(covered), func(t *testing.T) {
			w := newWorld(5, 4, Terms{Length: 5000, Bits: 8, MinSurvivors: 2, Faults: 1, Covered: covered})
			w.server = must(NewServer(w.config, 2))
			key := must(keyexchange.GenerateSealKey(chacha(1)))
			var batch []byte
			again := func() {
				t.Helper()
				state, err := w.server.SaveParts(key)
				if err != nil {
					t.Fatal(err)
				}
				var b bytes.Buffer
				if apart := w.server.Flight(); apart != nil {
					must(apart.WriteTo(&b))
					batch = b.Bytes()
					other := bytes.Clone(batch)
					other[len(other)-1] ^= 1
					for _, bad := range [][]byte{other, batch[1:], batch[:len(batch)-1], nil} {
						if _, err := ReadServer(w.config, 2, key, state, bytes.NewReader(bad)); !errors.Is(err,
							ErrState) {
							t.Fatal(err)
						}
					}
				}
				if w.server, err = ReadServer(w.config, 2, key, state, &b); err != nil {
					t.Fatal(err)
				}
			}
			whole := must(w.server.Save(key))
			if _, err := ReadServer(w.config, 2, key, whole, nil); !errors.Is(err, ErrState) {
				t.Errorf("what Save saved: %v", err)
			}
			again()
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			again()
			var kept, waiting [][]byte
			for i := range 5 {
				waiting = append(waiting, must(w.submit(i)))
				if err := w.server.Receive(waiting[len(waiting)-1]); err != nil {
					t.Fatal(err)
				}
				if again(); w.server.Waiting() != 0 {
					t.Fatal("a submission that waits is in the state")
				}
				for _, m := range waiting {
					if err := w.server.Receive(m); err != nil {
						t.Fatal(err)
					}
				}
				if i%2 == 0 && i < 4 {
					continue
				}
				waiting = nil
				must(w.server.Batch())
				again()
				if w.server.BatchNumber() != len(kept)+1 {
					t.Fatal(w.server.BatchNumber())
				}
				if err := w.deliver(nil); err != nil {
					t.Fatal(err)
				}
				kept = append(kept, batch)
				again()
			}
			sum, err := w.finish(nil)
			if covered {
				for _, b := range kept {
					for range 2 {
						if err := w.server.ReadBatch(bytes.NewReader(b)); err != nil {
							t.Fatal(err)
						}
					}
				}
				sum, err = w.server.Sum()
			}
			if err != nil {
				t.Fatal(err)
			}
			w.near(t, sum, w.total(0, 1, 2, 3, 4))
		})
	}
}
