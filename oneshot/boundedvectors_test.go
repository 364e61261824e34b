package oneshot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// In the round of bounded.json a party deals a member a share that does not fit.
const boundedCheat, boundedWronged = 3, 4

// TestBoundedVectors: a round with a bound, of SPEC-ONESHOT.md §14, in which a complaint convicts.
func TestBoundedVectors(t *testing.T) {
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
		statement := statement(&context, 0, root, hash(labelMasked, m.masked), m.extra, s.bind(m))
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
