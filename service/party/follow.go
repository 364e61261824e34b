package party

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
)

// This file lets a party, or a member of a committee, continue in a federation that continues its
// own.

// Successor returns the federation that continues the party's own, by the signed statement of an
// operator listed in its Policy's Follow, and that Policy and Book permit; nil if there is none. A
// federation that they do not permit is skipped if a permitted federation continues it: the party's
// book then lists the skipped federation as declined. Successor fails with [consent.ErrPolicy] if
// they permit none of the federations.
func (p *Party) Successor(ctx context.Context) (*federation.Federation, error) {
	next, passed, err := p.Server.successor(ctx, p.Federation.ID, "roster", p.mayFollow)
	for _, f := range passed {
		if err == nil {
			err = p.Book.Decline(f.Settled)
		}
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// mayFollow returns an error unless the party may continue from its federation in another: errWord,
// if that one may not be passed over either.
func (p *Party) mayFollow(s successor) error {
	key, _ := p.Identity.Public().(ed25519.PublicKey)
	_, found := s.next.Settled.Roster().Index(key)
	if err := mayFollow(p.Policy, p.Federation, s, found); err != nil {
		return err
	}
	if p.Book == nil {
		return errors.New("the party has no book")
	}
	var passed []*job.Settled
	for _, f := range s.passed {
		passed = append(passed, f.Settled)
	}
	return p.Book.Check(p.Policy, s.next.Settled, key, passed...)
}

// Successor returns the federation that continues the member's own, as [Party.Successor] does. A
// member has no book, since it spends nothing.
func (m *Member) Successor(ctx context.Context) (*federation.Federation, error) {
	next, _, err := m.Server.successor(ctx, m.Federation.ID, "committee", m.mayFollow)
	return next, err
}

// mayFollow returns an error unless the member may continue from its federation in another.
func (m *Member) mayFollow(s successor) error {
	found := false
	if list := s.next.Committee(); list != nil {
		key, _ := m.Identity.Public().(ed25519.PublicKey)
		_, found = list.Index(key)
	}
	return mayFollow(m.Policy, m.Federation, s, found)
}

// successor is a federation that claims to continue another.
type successor struct {
	next       *federation.Federation
	succession []byte
	from       string                   // identifier of the one that it should continue
	passed     []*federation.Federation // between that of the party and this one, in order
}

// mostPassed is how many successive federations may be passed over.
const mostPassed = 100

// successor returns the first federation that continues another and that may be followed, and those
// in between. list is the one that the caller is in.
func (s *Server) successor(ctx context.Context, id, list string, may func(successor) error,
) (found *federation.Federation, passed []*federation.Federation, err error) {
	var refused error
	for from := id; len(passed) < mostPassed; {
		offered, err := s.successors(ctx, from)
		if err != nil {
			return nil, nil, err
		}
		var over *federation.Federation
		for _, l := range offered {
			if len(l.Succession) == 0 {
				refused = errors.Join(refused, declines(l, errUnsigned, list))
				continue
			}
			next, err := s.whole(ctx, l.ID)
			var r *RefusalError
			switch {
			case errors.As(err, &r) && r.Kind == "stranger":
				refused = errors.Join(refused, declines(l, errUnlisted, list))
				continue
			case err != nil:
				return nil, nil, err
			}
			if err = may(successor{next, l.Succession, from, passed}); err == nil {
				return next, passed, nil
			}
			if over == nil && !errors.Is(err, errWord) && !errors.Is(err, federation.ErrSuccession) {
				over = next
			}
			refused = errors.Join(refused, declines(l, err, list))
		}
		if over == nil {
			break
		}
		from, passed = over.ID, append(passed, over)
	}
	return nil, nil, refused
}

// declines says why a successor is not followed. It is [consent.ErrPolicy], and says so once.
func declines(l exchange.Successor, why error, list string) error {
	if errors.Is(why, errUnlisted) {
		return &unlistedError{l, list}
	}
	return fmt.Errorf("%w: %s (%.16s…): %s", consent.ErrPolicy, l.Name, l.ID,
		strings.TrimPrefix(why.Error(), consent.ErrPolicy.Error()+": "))
}

// errUnsigned: a federation continues the other, and nobody signed that.
var errUnsigned = errors.New("it continues this one, but no operator that follow names signed " +
	"it; its operator can declare another, by 'hushsumd federation create' with --identity")

var errUnlisted = errors.New("this identity's key is not in its list")

// unlistedError: a successor goes on without the caller. It is [consent.ErrPolicy], without its
// text.
type unlistedError struct {
	next exchange.Successor
	list string
}

func (e *unlistedError) Error() string {
	return fmt.Sprintf("party: its key is not in the %s of %s (%.16s…); this command may be stopped, "+
		"unless the operator declares another", e.list, e.next.Name, e.next.ID)
}

func (e *unlistedError) Is(target error) bool { return target == consent.ErrPolicy }

// errWord: no operator whom the policy follows says that it continues the other.
var errWord = errors.New("it is not signed by an operator listed in follow")

// mayFollow returns an error unless a policy lets its owner continue from one federation in
// another; listed tells whether the owner is in the other's roster or committee.
func mayFollow(p *consent.Policy, was *federation.Federation, s successor, listed bool) error {
	next := s.next
	signer, err := next.Signer(s.succession)
	if err != nil {
		return err
	}
	if p == nil {
		return fmt.Errorf("%w: there is no policy", errWord)
	}
	// Anyone who alone writes the committee's list reads every update, and so do invented parties:
	// both lists count.
	joined, _, renewed := Changes(was.Settled.Roster(), next.Settled.Roster())
	members, _, changed := Changes(was.Committee(), next.Committee())
	added := len(joined) + len(renewed) + len(members) + len(changed)
	switch {
	case next.Settled.Before().Federation != s.from:
		return fmt.Errorf("%w: it continues another", errWord)
	case !slices.Contains(p.Follow, hex.EncodeToString(signer)):
		return fmt.Errorf("%w: it is signed by %x, which follow does not list", errWord, []byte(signer))
	case !listed:
		return errUnlisted
	case added > p.FollowJoined:
		return fmt.Errorf("it has %d new parties, members or keys, and follow_joined is %d; join it by "+
			"hand, with the fingerprints of its lists", added, p.FollowJoined)
	}
	return p.Check(next.Settled)
}

// Changes lists the names that have joined a roster or a committee, that have left it, and whose
// keys in it have changed. A nil roster is an empty list.
func Changes(was, is *keyexchange.Roster) (joined, left, renewed []string) {
	before, now := entries(was), entries(is)
	keys := map[string]ed25519.PublicKey{}
	for _, e := range before {
		keys[e.Name] = e.Key
	}
	for _, e := range now {
		key, found := keys[e.Name]
		switch {
		case !found:
			joined = append(joined, e.Name)
		case !key.Equal(e.Key):
			renewed = append(renewed, e.Name)
		}
		delete(keys, e.Name)
	}
	for _, e := range before {
		if _, gone := keys[e.Name]; gone {
			left = append(left, e.Name)
		}
	}
	return joined, left, renewed
}

func entries(r *keyexchange.Roster) (out []keyexchange.Entry) {
	for i := 0; r != nil && i < r.Len(); i++ {
		out = append(out, keyexchange.Entry{Name: r.Name(i), Key: r.Key(i)})
	}
	return out
}

// whole works a federation out from the server's description alone: it is to be trusted only as far
// as its identifier is.
func (s *Server) whole(ctx context.Context, id string) (*federation.Federation, error) {
	said, err := s.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	var files federation.Files
	if files.Roster, err = s.Roster(ctx, id); err != nil {
		return nil, err
	}
	if said.Committee != "" {
		if files.Committee, err = s.Committee(ctx, id); err != nil {
			return nil, err
		}
	}
	return s.WorkOut(ctx, id, said, files)
}

// WorkOut works a federation out from the server's description of it and the lists that the caller
// trusts: roster and committee. It fails with [ErrServer] if the identifier then differs.
func (s *Server) WorkOut(
	ctx context.Context, id string, said *exchange.Description, files federation.Files,
) (f *federation.Federation, err error) {
	files.Text = []byte(said.Text)
	if said.Initial {
		if files.Model, err = s.Initial(ctx, id); err != nil {
			return nil, err
		}
	}
	if said.Before {
		if files.Before, err = s.Before(ctx, id); err != nil {
			return nil, err
		}
	}
	if f, err = federation.New(files); err != nil {
		return nil, err
	}
	if f.Key, err = hex.DecodeString(said.Key); err != nil || len(f.Key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: it does not say which key signs the federation's decisions",
			ErrServer)
	}
	if f.ID != id {
		return nil, fmt.Errorf("%w: its federation is %.16s…, and with these lists it is %.16s…: the "+
			"rosters or committees differ", ErrServer, id, f.ID)
	}
	return f, nil
}
