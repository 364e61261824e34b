package main

import (
	"context"
	"crypto/ed25519"
	"errors"

	"github.com/hushsum/hushsum/service/party"
)

func member(ctx context.Context, args []string, std streams) error {
	f := flags("member", "member --server URL --identity FILE --roster FILE --committee FILE [flags]", `
It helps in a federation whose parties send one message a round, as a member of its committee: it
makes a key for each round, checks which parties are in the sum, signs that once, and sends the
server the sum of its parts of their keys. It sees nothing that parties submit. First it explains
what the federation means and asks for consent; what was accepted is pinned in the folder, and after
any change it asks again. With --follow it continues in federations that continue this one.

The folder holds the member's state, under its own key. A member that has lost it says with --spent
up to which round it may have helped: it helps in none of these again. A folder is for one member of
one federation, with folders for those that continue it, and never for a party.`, std)
	var j joining
	j.flags(f, "hushsum-member")
	f.IntVar(&j.spent, "spent", 0, "last `round` that it may have helped in, if the state is lost "+
		"for good")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	p, err := j.peer(ctx, std)
	if err == nil {
		err = j.resume(p)
	}
	if err == nil && j.resumes == "" { // else it has seen the end
		err = permitted(p)
	}
	if err != nil {
		return err
	}
	one := p.Federation.Settled.Oneshot()
	if one == nil {
		return errors.New("the federation's sums are pairwise, and have no committee")
	}
	public, _ := p.Identity.Public().(ed25519.PublicKey)
	if _, found := one.Committee.Index(public); !found {
		return errors.New("this identity's key is not in the committee")
	}
	if err := j.agree(p.Federation, std); err != nil {
		return err
	}
	if err := started(); err != nil {
		return err
	}
	for {
		m := party.Member{
			Federation: p.Federation,
			Identity:   p.Identity,
			Server:     p.Server,
			Folder:     p.Folder,
			Key:        p.Key,
			Policy:     p.Policy,
			Log:        p.Log,
			Spent:      p.Spent,
		}
		if j.resumes == "" {
			if err := m.Run(ctx); err != nil {
				return advise(err)
			}
		}
		if err := j.ended(nil, std.out); err != nil {
			return err
		}
		if !j.followed {
			return nil
		}
		if err := j.follow(ctx, p, m.Successor, std); err != nil {
			return err
		}
	}
}
