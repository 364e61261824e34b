package oneshot

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
)

var rewriteEvidence = flag.Bool("evidence", false, "make testdata/*.evidence anew")

// evidenceFiles are vectors of each kind.
var evidenceFiles = []string{"proof.evidence", "shares.evidence", "cover.evidence"}

// noiseFiles are those against a member: its noise has a proof that does not hold, and is not what
// it was to be drawn from.
var noiseFiles = []string{"noise.evidence", "drawn.evidence"}

const noiseLiar = 4

// TestNoiseEvidence: the vectors convict a member, and neither another one nor a party, nor anybody
// once they are changed.
func TestNoiseEvidence(t *testing.T) {
	if *rewriteEvidence {
		writeNoiseEvidence(t)
	}
	for _, name := range noiseFiles {
		b := readEvidence(t, name)
		e, err := ParseEvidence(b)
		if err != nil {
			t.Fatal(err)
		}
		checkNoiseEvidence(t, e, noiseLiar)
		checkChanged(t, name, b)
	}
}

// writeNoiseEvidence makes the vectors against a member.
func writeNoiseEvidence(t *testing.T) {
	for _, name := range noiseFiles {
		w := newWorld(5, 7, boundedNoise(7, 2))
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		w.server.open.received.Remove(5 + noiseLiar)
		candidates := w.server.open.candidates[noiseLiar]
		message := w.deal(5+noiseLiar, cheats["uniform y"])
		if name == "drawn.evidence" {
			w.server.open.candidates[noiseLiar] = candidates
			message = w.signedAudit(noiseLiar, message)
		}
		var member *MemberError
		err := w.server.Receive(message)
		if !errors.As(err, &member) {
			t.Fatal(err)
		}
		b := must(member.Evidence.AppendBinary(nil))
		if err := os.WriteFile(filepath.Join("testdata", name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func readEvidence(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// writeEvidence makes the vectors.
func writeEvidence(t *testing.T) {
	w := newWorld(5, 7, bounded(Terms{Colluders: 1}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	var named *PartyError
	if err := w.server.Receive(w.deal(1, cheats["uniform y"])); !errors.As(err, &named) {
		t.Fatal(err)
	}
	for i, d := range map[int]dealer{0: {}, 2: {}, 3: {parts: moved(4)}} {
		if err := w.server.Receive(w.deal(i, d)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	for i, e := range []*Evidence{named.Evidence, w.convicted[0].Evidence} {
		b := must(e.AppendBinary(nil))
		if err := os.WriteFile(filepath.Join("testdata", evidenceFiles[i]), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, messages := reducing(t, map[int]string{3: "uniform y"})
	for _, m := range messages {
		if err := w.server.Uncover(m); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.As(w.server.Convicted()[0], &named) {
		t.Fatal(w.server.Convicted())
	}
	b := must(named.Evidence.AppendBinary(nil))
	if err := os.WriteFile(filepath.Join("testdata", evidenceFiles[2]), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEvidence: the vectors convict whom they say, and whatever is changed in them is refused, by
// the decoder or by the check.
func TestEvidence(t *testing.T) {
	if *rewriteEvidence {
		writeEvidence(t)
	}
	for i, name := range evidenceFiles {
		b := readEvidence(t, name)
		e, err := ParseEvidence(b)
		if err != nil {
			t.Fatal(err)
		}
		member, shares := e.Member()
		party := []int{1, 3, 3}[i]
		if e.Party() != party || shares != (i == 1) || shares && member != 4 || e.Round() != 1 ||
			e.Config().Roster.Name(party) != fmt.Sprint("party-", party) || e.Config().Covered != (i == 2) {
			t.Errorf("%s: about party %d, member %d of round %d", name, e.Party(), member, e.Round())
		}
		if err := e.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkChanged(t, name, b)
	}
}

// checkChanged: evidence with a byte changed, or of another length, is none.
func checkChanged(t *testing.T, name string, b []byte) {
	t.Helper()
	for k := range 24 {
		at := k * len(b) / 24
		other := slices.Clone(b)
		other[at] ^= 1
		e, err := ParseEvidence(other)
		if err == nil {
			err = e.Verify()
		}
		if !errors.Is(err, ErrEvidence) && !errors.Is(err, ErrEncoding) && !errors.Is(err, ErrConfig) {
			t.Errorf("%s with byte %d of %d changed: %v", name, at, len(b), err)
		}
	}
	for _, other := range [][]byte{nil, b[:20], b[:len(b)-1], append(slices.Clone(b), 0)} {
		if _, err := ParseEvidence(other); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s, %d of %d bytes: %v", name, len(other), len(b), err)
		}
	}
}

// TestEvidenceFramesNobody: what an honest party signed convicts it of nothing, whatever of its
// round is shown with it: under another bound, another round, as another party's, as another
// member's leaf.
func TestEvidenceFramesNobody(t *testing.T) {
	w := newWorld(5, 7, bounded(Terms{Colluders: 1}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Receive(must(w.submit(0))); err != nil {
		t.Fatal(err)
	}
	c, r := w.server.config, w.server.open
	sub := r.waiting[0]
	m := must(c.parseSubmission(sub.body, r.members.Len()))
	plain := must(open(w.members[2].open.private, boxInfo(&r.context, 0, 2),
		m.boxes[2*c.boxSize():][:c.boxSize()]))
	proof := claim{Party: 0, Member: -1, Signature: m.signature, Dealing: m.dealing,
		Root: sub.levels[c.depth][0], Packed: m.masked, Proof: m.proof}
	shares := claim{Party: 0, Member: 2, Signature: m.signature, Dealing: m.dealing,
		Masked: sub.masked, Digest: hash(labels.OneshotProofDigest, m.proof), Path: path(sub.levels, 2),
		Plain: plain}
	longer := *w.config
	longer.Norm--
	for name, change := range map[string]func(e *Evidence){
		"as it is":       func(*Evidence) {},
		"another bound":  func(e *Evidence) { e.config = &longer },
		"another round":  func(e *Evidence) { e.round++ },
		"another party":  func(e *Evidence) { e.claim.Party = 1 },
		"another member": func(e *Evidence) { e.claim.Member = max(e.claim.Member, 2) + 1 },
		"another proof": func(e *Evidence) {
			e.claim.Proof = slices.Clone(e.claim.Proof)
			e.claim.Proof[0] ^= 1
		},
		"another dealing": func(e *Evidence) {
			e.claim.Dealing = slices.Clone(e.claim.Dealing)
			e.claim.Dealing[64] ^= 1
		},
		"other shares": func(e *Evidence) {
			if e.claim.Plain = slices.Clone(e.claim.Plain); e.claim.Plain != nil {
				e.claim.Plain[0] ^= 1
			}
		},
		"no bound": func(e *Evidence) {
			config := *e.config
			config.Norm, config.Noise = 0, noise.Law{}
			e.config = &config
		},
	} {
		for _, c := range []claim{proof, shares} {
			if c.Member < 0 && name == "another member" || c.Member >= 0 && name == "another proof" {
				continue
			}
			e := &Evidence{config: w.config, round: 1, opening: w.opening[bodyAt:], claim: c}
			change(e)
			if err := e.Verify(); !errors.Is(err, ErrEvidence) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := new(Evidence).AppendBinary(nil); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// FuzzEvidence: there is one form of evidence, and it holds of nobody but those of the vectors.
func FuzzEvidence(f *testing.F) {
	signed := make(map[[keyexchange.SignatureSize]byte]bool)
	for _, name := range slices.Concat(evidenceFiles, noiseFiles) {
		b := readEvidence(f, name)
		f.Add(b)
		signed[must(ParseEvidence(b)).claim.Signature] = true
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvidence(b)
		if err != nil {
			return
		}
		if again := must(e.AppendBinary(nil)); !bytes.Equal(again, b) {
			t.Fatal("evidence of two forms")
		}
		if e.Verify() == nil && !signed[e.claim.Signature] {
			t.Fatal("evidence that nobody signed")
		}
	})
}

// TestEvidenceOfNobody: evidence about who is not in the roster, or of who is not in the committee,
// is none.
func TestEvidenceOfNobody(t *testing.T) {
	for name, change := range map[string]func(c *claim){
		"proof.evidence":  func(c *claim) { c.Party = 5 },
		"shares.evidence": func(c *claim) { c.Member = 7 },
	} {
		e, err := ParseEvidence(readEvidence(t, name))
		if err != nil {
			t.Fatal(err)
		}
		change(&e.claim)
		if _, err := ParseEvidence(must(e.AppendBinary(nil))); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
