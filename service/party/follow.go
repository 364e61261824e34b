package party

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
)

// This file has how a party goes on in a federation that goes on from its own.

// Successor returns the federation that goes on from the party's own, at the word of an operator of
// its Policy's Follow, and that Policy and Book allow; nil if there is none. It fails with
// [ErrPolicy] if there are only such as they do not allow.
func (p *Party) Successor(ctx context.Context) (*federation.Federation, error) {
	list, err := p.Server.successors(ctx, p.Federation.ID)
	if err != nil {
		return nil, err
	}
	var refused error
	for _, s := range list {
		next, err := p.Server.whole(ctx, s.ID)
		var r *RefusalError
		switch {
		case errors.As(err, &r) && r.Kind == "stranger":
			refused = errors.Join(refused, fmt.Errorf("%w: %s (%.16s…): this party's key is not in its "+
				"roster", ErrPolicy, s.Name, s.ID))
			continue
		case err != nil:
			return nil, err
		}
		if err = p.mayFollow(next, s.Succession); err == nil {
			return next, nil
		}
		refused = errors.Join(refused, fmt.Errorf("%w: %s (%.16s…): %w", ErrPolicy, s.Name, s.ID, err))
	}
	return nil, refused
}

// mayFollow returns an error unless the party goes on from its federation in another.
func (p *Party) mayFollow(next *federation.Federation, succession []byte) error {
	signer, err := next.Signer(succession)
	if err != nil {
		return err
	}
	if p.Policy == nil || p.Book == nil {
		return errors.New("the party has no policy or no book")
	}
	key, _ := p.Identity.Public().(ed25519.PublicKey)
	roster := next.Settled.Roster()
	i, found := roster.Index(key)
	joined, _, renewed := Changes(p.Federation.Settled.Roster(), roster)
	switch {
	case next.Settled.Before().Federation != p.Federation.ID:
		return errors.New("it goes on from another")
	case !slices.Contains(p.Policy.Follow, hex.EncodeToString(signer)):
		return fmt.Errorf("it is signed by %x, whom follow does not have", []byte(signer))
	case !found:
		return errors.New("this party's key is not in its roster")
	case len(joined)+len(renewed) > p.Policy.FollowJoined:
		return fmt.Errorf("it has %d parties or keys that are new, follow_joined is %d; join it by "+
			"hand, with the roster's fingerprint", len(joined)+len(renewed), p.Policy.FollowJoined)
	}
	if err := p.Policy.Check(next); err != nil {
		return err
	}
	return p.Book.Check(p.Policy, next, roster.Name(i))
}

// Changes lists the names of those who have joined a roster, left it, and have another key in it.
func Changes(was, is *keyexchange.Roster) (joined, left, renewed []string) {
	keys := map[string]ed25519.PublicKey{}
	for i := range was.Len() {
		keys[was.Name(i)] = was.Key(i)
	}
	for i := range is.Len() {
		name := is.Name(i)
		key, found := keys[name]
		switch {
		case !found:
			joined = append(joined, name)
		case !key.Equal(is.Key(i)):
			renewed = append(renewed, name)
		}
		delete(keys, name)
	}
	for i := range was.Len() {
		if _, gone := keys[was.Name(i)]; gone {
			left = append(left, was.Name(i))
		}
	}
	return joined, left, renewed
}

// whole works a federation out from what the server alone says: only as much is to be trusted as
// its identifier is.
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

// WorkOut works a federation out from what the server says of it and the lists that one trusts:
// roster and committee. It fails with [ErrServer] if that comes to another identifier.
func (s *Server) WorkOut(
	ctx context.Context, id string, said *door.Description, files federation.Files,
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
	if f.ID != id {
		return nil, fmt.Errorf("%w: its federation is %.16s…, and with these lists it is %.16s…: the "+
			"rosters or committees differ", ErrServer, id, f.ID)
	}
	return f, nil
}
