package normproof

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A mutation changes one byte, or one number, of a vector.
type mutation struct {
	vector int
	field  string
	place  int // within a list; −1: it is none
	at     int
	mask   byte
}

func (m *mutation) String() string {
	place := "-"
	if m.place >= 0 {
		place = fmt.Sprint(m.place)
	}
	return fmt.Sprint(m.vector, " ", m.field, " ", place, " ", m.at, " ", m.mask)
}

// verdict holds the decision of this package on a mutated vector.
func (m *mutation) verdict(t *testing.T, v *vector, s Scheme) string {
	st, d, proof := v.parse(t)
	statement := map[string][]byte{
		"Config": st.Config[:], "Context": st.Context[:], "RingKey": st.RingKey[:],
		"Root": st.Root[:], "Digest": st.Digest[:], "Commitment": st.Commitment,
		"KeyPoint": d.Key[:], "MaskPoint": d.Mask[:], "Proof": proof,
	}
	switch m.field {
	case "Party":
		st.Party ^= uint32(m.mask)
	case "Role":
		st.Role ^= m.mask
	case "Bound":
		s.Bound ^= uint64(m.mask)
	case "KeyBound":
		s.KeyBound ^= uint64(m.mask)
	case "Masked":
		st.Masked[m.place] ^= uint64(m.mask)
	case "Combined":
		d.Combined[m.place][m.at] ^= m.mask
	default:
		statement[m.field][m.at] ^= m.mask
	}
	switch err := s.Verify(st, d, proof); {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrEncoding):
		return "encoding"
	case errors.Is(err, ErrProof):
		return "proof"
	default:
		t.Fatal(m, err)
		return ""
	}
}

// testdata/verify.py, which was written from the specification alone, says the same of the vectors
// and of mutated ones: in every field, of all parts of the proof, and with highest bits, where
// encodings have their limits.
func TestPython(t *testing.T) {
	stored, err := os.ReadFile("testdata/proofs.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []*vector
	if err := json.Unmarshal(stored, &vectors); err != nil {
		t.Fatal(err)
	}
	count := suite.Size(4, 8, 200, 10_000)
	r := rand.New(rand.NewPCG(9, 10))
	mutations := []*mutation{{0, "Config", -1, 0, 0}, {1, "Config", -1, 0, 0}} // none
	fields := []string{"Config", "Context", "RingKey", "Root", "Digest", "KeyPoint", "MaskPoint"}
	for i := range count {
		v := i % 2
		m := &mutation{v, "Proof", -1, 0, 1 << r.IntN(8)}
		size, own := len(vectors[v].Proof)/2, vectors[v].scheme(t)
		firsts := 64 + own.tests*own.testSize() + sumSize*floodRows
		switch i % 8 {
		case 0:
			m.field, m.at = fields[r.IntN(len(fields))], r.IntN(32)
		case 1:
			m.field, m.place, m.at = "Combined", r.IntN(len(vectors[v].Combined)), r.IntN(32)
		case 2:
			m.field = []string{"Party", "Role", "Bound", "KeyBound"}[r.IntN(4)]
		case 3: // the lowest bit, so that none gets above the modulus
			m.field, m.place, m.mask = "Masked", r.IntN(vectors[v].Length), 1
		case 4:
			m.at = r.IntN(firsts)
		case 5:
			m.at = firsts + r.IntN(32*9)
		case 6:
			m.at = firsts + 32*r.IntN((size-firsts)/32) + 31
		case 7:
			m.at = size - 1 - r.IntN(6*32)
		}
		mutations = append(mutations, m)
	}
	var lines strings.Builder
	for _, m := range mutations {
		fmt.Fprintln(&lines, m)
	}
	got := python(t, lines.String())
	if len(got) != len(mutations) {
		t.Fatalf("%d verdicts of %d", len(got), len(mutations))
	}
	schemes := []*Scheme{vectors[0].scheme(t), vectors[1].scheme(t)}
	verdicts := map[string]int{}
	for i, m := range mutations {
		want := m.verdict(t, vectors[m.vector], *schemes[m.vector])
		if got[i] != want || (want == "ok") != (m.mask == 0) {
			t.Errorf("%v: %s there, %s here", m, got[i], want)
		}
		verdicts[want]++
	}
	t.Log(verdicts)
	if got := python(t, ""); strings.Join(got, " ") != "ok ok" {
		t.Error(got)
	}
}

// python runs the verifier on the vectors.
func python(t *testing.T, lines string) []string {
	t.Helper()
	name, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3, which is not there")
	}
	c := exec.Command(name, "testdata/verify.py", "testdata/proofs.json")
	c.Stdin, c.Stderr = strings.NewReader(lines), os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
