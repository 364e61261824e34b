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
// go on in. Tests wait less.
var followPause = 10 * time.Second

// follows refuses --follow without operators to follow.
func (j *joining) follows(policy *party.Policy) error {
	if j.followed && (policy == nil || len(policy.Follow) == 0) {
		return misuse("--follow takes a --policy with operators in follow")
	}
	return nil
}

// follow waits for a federation that goes on from p's and that its policy accepts at an operator's
// word, and makes p take part in it. successor asks for one.
func (j *joining) follow(ctx context.Context, p *party.Party,
	successor func(context.Context) (*federation.Federation, error), std streams,
) error {
	fmt.Fprintln(std.out, "waiting for one that goes on from it")
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
				fmt.Fprintln(std.out, "this identity does not go on:", told)
			}
		case err != nil:
			p.Log.Warn("asking again for a federation that goes on", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followPause/2 + rand.N(followPause)):
		}
	}
}

// difference says how a list has changed.
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
