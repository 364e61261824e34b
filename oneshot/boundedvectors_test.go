package oneshot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// In the round of bounded.json a party deals a member a share that does not fit.
const boundedCheat, boundedWronged = 3, 4

// TestBoundedVectors: a round with a bound, of SPEC-ONESHOT.md §14, in which a complaint convicts.
func TestBoundedVectors(t *testing.T) {
	remember(t)
	r := record(t, "a bound, noise, X25519; party 3 deals member 4 a share that does not fit",
		bounded(Terms{Colluders: 1, KEM: KEMX25519}))
	compare(t, "bounded.json", r.out)
	if slices.Contains(r.out.Included, boundedCheat) {
		t.Error("the cheat is in the sum")
	}
	refusals := r.boundedRefusals(t)
	for i, one := range refusals {
		t.Run(one.Name, func(t *testing.T) { refusals[i].Error = r.present(t, one) })
	}
	compare(t, "bounded-refusals.json", refusals)
}

// boundedRefusals lists bad submissions and complaints with the errors that they must give.
func (r *recorded) boundedRefusals(t *testing.T) (out []vectorRefusal) {
	s := must(r.config.settle())
	first := func(kind int, from string) int {
		return slices.IndexFunc(r.out.Messages,
			func(m vectorMessage) bool { return m.Type == kind && (from == "" || m.From == from) })
	}
	add := func(name string, after int, message []byte, want string) {
		one := vectorRefusal{Name: name, After: after, To: "server", Error: want, message: message,
			Spends: want == "ErrProof" || want == "ErrComplaint"}
		one.describe(r.out.Messages)
		out = append(out, one)
	}
	context := [32]byte(r.out.Context)
	sub := first(67, "party 0")
	addSigned := func(name string, message []byte, want string) {
		of := r.out.Messages[sub].Message
		unsigned := slices.Clone(message)
		copy(unsigned[len(unsigned)-64:], of[len(of)-64:])
		add(name, sub, unsigned, want)
		one := &out[len(out)-1]
		one.message, one.Signature = message, message[len(message)-64:]
	}
	parts := func(at int) (*submission, []byte) {
		message := slices.Clone(r.out.Messages[at].Message)
		return must(s.parseSubmission(message[bodyAt:], 6)), message
	}
	other, _ := parts(sub + 1)
	// signed is party 0's submission after a change, and signed by it.
	signed := func(change func(m *submission)) []byte {
		m, message := parts(sub)
		change(m)
		leaves := make([][32]byte, s.c)
		for k := range 6 {
			leaves[k] = [32]byte(m.leaves[32*k:])
		}
		root := tree(leaves, s.depth)[s.depth][0]
		statement := statement(&context, 0, root, hash(labels.OneshotMasked, m.masked), m.extra,
			s.bind(&context, 0, m))
		signature := must(keyexchange.Sign(r.keys[0], s.statementLabel(0), statement))
		copy(message[len(message)-len(signature):], signature[:])
		return message
	}
	for _, c := range []struct {
		name   string
		change func(m *submission)
		want   string
	}{
		{"another y", func(m *submission) { copy(m.masked, other.masked) }, "ErrProof"},
		{"another C_s", func(m *submission) { copy(m.dealing[:32], other.dealing) }, "ErrProof"},
		{"another C_0", func(m *submission) { copy(m.dealing[32:64], other.dealing[32:]) }, "ErrProof"},
		{"another P", func(m *submission) { copy(m.dealing[64:96], other.dealing[64:]) }, "ErrProof"},
		{"another last of P", func(m *submission) {
			copy(m.dealing[len(m.dealing)-32:], other.dealing[len(m.dealing)-32:])
		}, "ErrProof"},
		{"another dealing", func(m *submission) { copy(m.dealing, other.dealing) }, "ErrProof"},
		{"another party's proof", func(m *submission) { copy(m.proof, other.proof) }, "ErrProof"},
		{"another first part of the proof", func(m *submission) {
			copy(m.proof[:32], other.proof)
		}, "ErrProof"},
		{"another last part of the proof", func(m *submission) {
			copy(m.proof[len(m.proof)-32:], other.proof[len(m.proof)-32:])
		}, "ErrProof"},
		{"another leaf", func(m *submission) { copy(m.leaves[:32], other.leaves) }, "ErrProof"},
		{"C_s is no point", func(m *submission) {
			copy(m.dealing, bytes.Repeat([]byte{255}, 32))
		}, "ErrEncoding"},
		{"P is no scalar", func(m *submission) {
			copy(m.dealing[64:], bytes.Repeat([]byte{255}, 32))
		}, "ErrEncoding"},
		{"the proof ends with no scalar", func(m *submission) {
			copy(m.proof[len(m.proof)-32:], bytes.Repeat([]byte{255}, 32))
		}, "ErrEncoding"},
	} {
		addSigned("signed submission: "+c.name, signed(c.change), c.want)
	}
	for _, c := range []struct {
		name   string
		change func(m *submission)
	}{
		{"C_s of another", func(m *submission) { copy(m.dealing[:32], other.dealing) }},
		{"P of another", func(m *submission) { copy(m.dealing[64:96], other.dealing[64:]) }},
		{"proof of another", func(m *submission) { copy(m.proof, other.proof) }},
	} {
		m, message := parts(sub)
		c.change(m)
		add("submission: "+c.name, sub, message, "ErrSignature")
	}

	// Complaints, by member 1, of whom nobody has seen a dispute.
	answer := first(69, "member 1")
	complain := func(c *complaint) []byte {
		head := s.header(typeComplaint, &context, r.out.Round, memberSender+1)
		return c.append(head)
	}
	plain := func(party int) []byte { return r.out.Dealings[party].Plain[1] } // before the cheat
	none := wire.NewSet(5)
	disputes := wire.NewSet(5)
	disputes.Add(2)
	opened := func(places ...int) (all []openedLeaf) {
		for _, place := range places {
			all = append(all, openedLeaf{place, plain(min(place, 2))})
		}
		return all
	}
	of := func(number int, disputes wire.Set, leaves ...openedLeaf) []byte {
		return complain(&complaint{number: number, disputes: disputes, opened: leaves})
	}
	honest := of(1, none, opened(0)...)
	add("complaint: an honest party's leaf", answer, honest, "ErrComplaint")
	made := openedLeaf{0, bytes.Repeat([]byte{1}, len(plain(0)))}
	add("complaint: a leaf that nobody made", answer, of(1, none, made), "ErrComplaint")
	add("complaint: nothing opened", answer, of(1, none), "ErrTruncated")
	add("complaint: a byte less", answer, honest[:len(honest)-1], "ErrTruncated")
	add("complaint: a byte more", answer, append(slices.Clone(honest), 0), "ErrTruncated")
	add("complaint: of another batch", answer, of(2, none, opened(0)...), "ErrPhase")
	add("complaint: one place twice", answer, of(1, none, opened(0, 0)...), "ErrEncoding")
	add("complaint: places descend", answer, of(1, none, opened(1, 0)...), "ErrEncoding")
	add("complaint: beyond the batch", answer, of(1, none, opened(5)...), "ErrEncoding")
	add("complaint: disputed too", answer, of(1, disputes, opened(2)...), "ErrEncoding")
	add("complaint: after disputes", answer+1, honest, "ErrDuplicate")
	add("complaint: before the batch", first(68, ""), honest, "ErrPhase")
	add("complaint: late", first(70, "")+1, honest, "ErrPhase")
	if convicts := first(int(typeComplaint), ""); convicts < 0 ||
		r.out.Messages[convicts].From != fmt.Sprint("member ", boundedWronged) {
		t.Fatal(errors.New("nobody complains in the round"))
	}
	return out
}

// TestCoveredVectors: a covered round with a bound, of SPEC-ONESHOT.md §16, in which a party is out
// again.
func TestCoveredVectors(t *testing.T) {
	remember(t)
	r := record(t, "covered with a bound, noise, X25519; party 3 has a value of twice the bound",
		covered(Terms{Colluders: 1, KEM: KEMX25519}))
	compare(t, "bounded-covered.json", r.out)
	if slices.Contains(r.out.Included, boundedCheat) {
		t.Error("the cheat is in the sum")
	}
	refusals := r.coveredRefusals()
	for i, one := range refusals {
		t.Run(one.Name, func(t *testing.T) { refusals[i].Error = r.present(t, one) })
	}
	compare(t, "bounded-covered-refusals.json", refusals)
}

// coveredRefusals lists bad evidence, reductions and covers with the errors that they must give.
func (r *recorded) coveredRefusals() (out []vectorRefusal) {
	s := must(r.config.settle())
	first := func(kind int) int {
		return slices.IndexFunc(r.out.Messages, func(m vectorMessage) bool { return m.Type == kind })
	}
	add := func(name, to string, after int, message []byte, want string) {
		one := vectorRefusal{Name: name, After: after, To: to, Error: want, message: message}
		one.describe(r.out.Messages)
		out = append(out, one)
	}
	guilty, reduction, covers := first(78), first(79), first(77)
	evidence := r.out.Messages[guilty].Message
	size := 4 + coverPlainSize + 32*s.depth
	at := len(evidence) - 2*size // where opened leaves begin
	for _, c := range []struct {
		name   string
		change func(b []byte)
		want   string
	}{
		{"of another party", func(b []byte) { b[bodyAt+3] = 2 }, "ErrEvidence"},
		{"of nobody", func(b []byte) { b[bodyAt+3] = 5 }, "ErrEncoding"},
		{"another signature", func(b []byte) { b[bodyAt+4] ^= 1 }, "ErrEvidence"},
		{"another commitment", func(b []byte) { b[bodyAt+68] ^= 1 }, "ErrEvidence"},
		{"another y", func(b []byte) { b[bodyAt+68+s.extraSize()+s.dealingSize()] ^= 1 }, "ErrEvidence"},
		{"another proof", func(b []byte) { b[at-1] ^= 1 }, "ErrEvidence"},
		{"another member", func(b []byte) { b[at+3] = 3; b[at+size+3] = 4 }, "ErrEvidence"},
		{"another value", func(b []byte) { b[at+4] ^= 1 }, "ErrEvidence"},
		{"another blind", func(b []byte) { b[at+4+scalarSize] ^= 1 }, "ErrEvidence"},
		{"another path", func(b []byte) { b[len(b)-1] ^= 1 }, "ErrEvidence"},
		{"one member twice", func(b []byte) { copy(b[at+size:], b[at:at+size]) }, "ErrEncoding"},
		{"a member without a key", func(b []byte) { b[at+size+3] = 6 }, "ErrEncoding"},
		{"a value that is no scalar", func(b []byte) {
			copy(b[at+4:], bytes.Repeat([]byte{255}, 32))
		}, "ErrEncoding"},
	} {
		changed := bytes.Clone(evidence)
		c.change(changed)
		add("guilty: "+c.name, "member 2", guilty, changed, c.want)
	}
	add("guilty: a byte less", "member 2", guilty, evidence[:len(evidence)-1], "ErrTruncated")
	add("guilty: a byte more", "member 2", guilty, append(bytes.Clone(evidence), 0), "ErrTrailing")
	add("guilty: twice", "member 2", guilty+1, evidence, "ErrDuplicate")
	add("guilty: before covers are opened", "member 2", first(73), evidence, "ErrPhase")
	all := r.out.Messages[reduction].Message
	set := func(b byte) []byte { return append(bytes.Clone(all[:bodyAt]), b) }
	add("reduction: nobody, and somebody is convicted", "member 2", guilty+1, set(0), "ErrStatement")
	add("reduction: somebody without evidence", "member 2", guilty+1, set(1<<boundedCheat|1),
		"ErrStatement")
	add("reduction: somebody else", "member 2", guilty+1, set(1), "ErrStatement")
	add("reduction: before its evidence", "member 2", guilty, all, "ErrStatement")
	add("reduction: beyond the roster", "member 2", guilty+1, set(1<<boundedCheat|1<<5), "ErrEncoding")
	add("reduction: longer", "member 2", guilty+1, append(bytes.Clone(all), 0), "ErrTrailing")
	add("reduction: twice", "member 2", reduction+1, all, "ErrPhase")
	opened := r.out.Messages[covers].Message
	add("covers: a byte less", "server", covers, opened[:len(opened)-1], "ErrTruncated")
	add("covers: a byte more", "server", covers, append(bytes.Clone(opened), 0), "ErrTrailing")
	bad := bytes.Clone(opened)
	copy(bad[bodyAt:], bytes.Repeat([]byte{255}, 32))
	add("covers: a value that is no scalar", "server", covers, bad, "ErrEncoding")
	add("covers: twice", "server", covers+1, opened, "ErrDuplicate")
	add("covers: before the certificate", "server", first(73), opened, "ErrPhase")
	part := r.out.Messages[first(74)].Message
	add("part: before the reduction", "server", covers+1, part, "ErrPhase")
	return out
}
