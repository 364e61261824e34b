package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

// followPause is about how long a party or a member waits between two questions for a federation to
// continue in, so that all of a small roster are present when one begins, which waits 8 s for those
// that come back. Those of large rosters wait twice as long. Tests wait less.
var followPause = 5 * time.Second

// largeRoster has more parties than ask every few seconds.
const largeRoster = 1000

// follows refuses --follow without operators to follow.
func (j *joining) follows(policy *party.Policy) error {
	if j.followed && (policy == nil || len(policy.Follow) == 0) {
		return misuse("--follow takes a --policy with operators in follow")
	}
	return nil
}

// follow waits for a federation that continues p's and that p's policy accepts on an operator's
// word, and makes p take part in it. successor asks for one.
func (j *joining) follow(ctx context.Context, p *party.Party,
	successor func(context.Context) (*federation.Federation, error), std streams,
) error {
	fmt.Fprintln(std.out, "waiting for one that continues it")
	told := ""
	for {
		next, err := successor(ctx)
		switch {
		case next != nil:
			difference(std.out, "", p.Federation.Settled.Roster(), next.Settled.Roster())
			difference(std.out, "of the committee, ", p.Federation.Committee(), next.Committee())
			show := *j
			show.folder, show.accept = filepath.Join(j.folder, next.ID[:16]), true
			p.Federation, p.Folder, p.LeastNumber, p.Spent = next, show.folder, 0, 0
			if err := os.MkdirAll(p.Folder, 0o700); err != nil {
				return err
			}
			return show.agree(next, std)
		case errors.Is(err, party.ErrPolicy):
			if err.Error() != told { // the operator may declare another
				told = err.Error()
				fmt.Fprintln(std.out, "this identity does not continue:", told)
			}
		case err != nil:
			p.Log.Warn("asking again for a federation that continues", "error", err.Error())
		}
		pause := followPause
		if p.Federation.Settled.Roster().Len() > largeRoster {
			pause *= 2
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// difference prints how a list has changed.
func difference(w io.Writer, list string, was, is *keyexchange.Roster) {
	joined, left, renewed := party.Changes(was, is)
	for _, c := range []struct {
		what  string
		names []string
	}{{"joined", joined}, {"left", left}, {"with another key", renewed}} {
		if len(c.names) > 0 {
			fmt.Fprintf(w, "%s%s: %s\n", list, c.what, strings.Join(c.names, ", "))
		}
	}
}
