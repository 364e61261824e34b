package normproof

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/proofs.json anew")

// A vector is a proof with everything that it is checked by, as testdata/proofs.json has it.
type vector struct {
	Name                    string
	Degree, Length          int
	Modulus                 uint64
	Bound, KeyBound         uint64
	PerPolynomial           int
	Threshold, LaneBits     int
	Config, Context         string
	RingKey, Root, Digest   string
	Commitment              string
	Party                   uint32
	Role                    uint8
	Masked                  []uint64
	KeyPoint, MaskPoint     string
	Combined                []string
	Proof                   string
	H0, H1, H2, H3          string // hashes between
	H4, H5, H6              string
	Gamma, Weight, Response string // scalars made from h0, h4 and h5
	Fold                    string // and from h6
}

func vectorOf(t *testing.T, name string, s *Scheme, n *instance) *vector {
	d, proof := n.prove(t, s, 1)
	p, err := s.decode(proof)
	if err != nil {
		t.Fatal(err)
	}
	st := n.statement
	v := &vector{
		Name: name, Degree: s.Degree, Length: s.Length, Modulus: s.Modulus, Bound: s.Bound,
		KeyBound: s.KeyBound, PerPolynomial: s.PerPolynomial, Threshold: s.Threshold,
		LaneBits: s.LaneBits, Config: hex.EncodeToString(st.Config[:]),
		Context: hex.EncodeToString(st.Context[:]), RingKey: hex.EncodeToString(st.RingKey[:]),
		Root: hex.EncodeToString(st.Root[:]), Digest: hex.EncodeToString(st.Digest[:]),
		Commitment: hex.EncodeToString(st.Commitment), Party: st.Party, Role: st.Role,
		Masked: st.Masked, KeyPoint: hex.EncodeToString(d.Key[:]),
		MaskPoint: hex.EncodeToString(d.Mask[:]), Proof: hex.EncodeToString(proof),
	}
	for _, c := range d.Combined {
		v.Combined = append(v.Combined, hex.EncodeToString(c[:]))
	}
	h0 := s.dealingHash(st, d.Key[:], d.Mask[:])
	h1 := rowsHash(&h0, d.Combined)
	h2 := hash(labels.OneshotProofTau, h1[:], p.sums[:])
	h3 := hash(labels.OneshotProofFlood, h2[:], p.testsEncoded, p.flood[:])
	h4 := hash(labels.OneshotProofSum, h3[:], p.sumsEncoded)
	h5 := hash(labels.OneshotProofEnd, h4[:], p.firstsEncoded)
	h6 := hash(labels.OneshotProofHalves, h5[:], p.restEncoded)
	for to, h := range map[*string]*[32]byte{
		&v.H0: &h0, &v.H1: &h1, &v.H2: &h2, &v.H3: &h3, &v.H4: &h4, &v.H5: &h5,
		&v.H6: &h6,
	} {
		*to = hex.EncodeToString(h[:])
	}
	v.Gamma = hex.EncodeToString(challenge(&h0, labels.OneshotProofGamma).Bytes())
	v.Weight = hex.EncodeToString(challenge(&h4, labels.OneshotProofWeight).Bytes())
	v.Response = hex.EncodeToString(challenge(&h5, labels.OneshotProofChallenge).Bytes())
	v.Fold = hex.EncodeToString(challenge(&h6, labels.OneshotProofFold).Bytes())
	return v
}

// vectorCases are two small statements: an open one of a party, a covered one of a member.
func vectorCases(t *testing.T) []*vector {
	open := newInstance(tinyScheme(), 11, 500)
	p := tiny
	p.Modulus, p.PerPolynomial, p.Threshold, p.Length = 0x7fffffdd001, 3, 5, 21
	p.Degree, p.LaneBits = 32, 20
	wide, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	covered := newInstance(wide, 12, 400)
	covered.statement.Role = 1
	covered.statement.Commitment = binary.BigEndian.AppendUint64(make([]byte, 24), 77)
	return []*vector{
		vectorOf(t, "open", tinyScheme(), open), vectorOf(t, "covered", wide, covered),
	}
}

// The same coins make the file's proofs, which hold.
func TestVectors(t *testing.T) {
	const file = "testdata/proofs.json"
	made, err := json.MarshalIndent(vectorCases(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(file, append(made, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != string(made)+"\n" {
		t.Errorf("%s is not what is made now", file)
	}
	var vectors []*vector
	if err := json.Unmarshal(stored, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		st, d, proof := v.parse(t)
		if err := v.scheme(t).Verify(st, d, proof); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

func (v *vector) scheme(t *testing.T) *Scheme {
	s, err := New(Parameters{v.Degree, v.Modulus, v.Length, v.Bound, v.KeyBound, v.PerPolynomial,
		v.Threshold, v.LaneBits})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (v *vector) parse(t *testing.T) (*Statement, *Dealing, []byte) {
	decode := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	array := func(text string) [32]byte { return [32]byte(decode(text)) }
	d := &Dealing{Key: array(v.KeyPoint), Mask: array(v.MaskPoint)}
	for _, c := range v.Combined {
		d.Combined = append(d.Combined, array(c))
	}
	st := &Statement{Config: array(v.Config), Context: array(v.Context), RingKey: array(v.RingKey),
		Party: v.Party, Role: v.Role, Root: array(v.Root), Digest: array(v.Digest),
		Commitment: decode(v.Commitment), Masked: slices.Clone(v.Masked)}
	return st, d, decode(v.Proof)
}
