package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

// followPause is about how long a party or a member waits between two questions for a federation to
// continue in, so that all of a small roster are present soon after one begins, whose first round
// waits for them. Those of large rosters wait twice as long. Tests wait less.
var followPause = 5 * time.Second

// largeRoster has more parties than ask every few seconds.
const largeRoster = 1000

// follows refuses --follow without operators to follow.
func (j *joining) follows(policy *consent.Policy) error {
	if j.followed && (policy == nil || len(policy.Follow) == 0) {
		return misuse("--follow takes a --policy with operators in follow")
	}
	return nil
}

// resume finds out in which federation a run continues: with --follow, the one that was accepted
// last. Until follow reaches it nothing is new, and the word that a state is lost is for that one.
func (j *joining) resume(p *party.Party) (err error) {
	j.resumes = p.Federation.ID
	switch {
	case j.followed && p.Book != nil:
		j.resumes, err = p.Book.Last(j.resumes)
	case j.followed: // a member has no book
		j.resumes, err = j.acceptedLast(j.resumes)
	}
	j.reach(p)
	return err
}

// reach has p's federation take the word that a state is lost, if the run continues in it.
func (j *joining) reach(p *party.Party) {
	p.Spent, p.LeastNumber = 0, 0
	if p.Federation.ID == j.resumes {
		p.Spent, p.LeastNumber, j.resumes = j.spent, j.least, ""
	}
}

// acceptedLast returns the identifier of the federation that was accepted last of those that
// continue one, by their folders, or that one itself.
func (j *joining) acceptedLast(id string) (string, error) {
	folders, err := fs.Glob(os.DirFS(j.folder), "*/"+fileAccepted)
	var last time.Time
	for _, name := range folders {
		in := joining{folder: filepath.Join(j.folder, path.Dir(name))}
		a, err := in.accepted()
		if err != nil {
			return "", err
		}
		if in.folder == j.folderOf(a.ID) && a.Time.After(last) {
			id, last = a.ID, a.Time
		}
	}
	return id, err
}

// folderOf returns the folder for a federation that continues the first one.
func (j *joining) folderOf(id string) string {
	return filepath.Join(j.folder, fmt.Sprintf("%.16s", id))
}

// ended prints that a federation has ended, and writes its model if one is to be kept. If the run
// goes on in one accepted before, an earlier run did so, and the file may have a later model.
func (j *joining) ended(model []byte, w io.Writer) error {
	if j.resumes != "" {
		return nil
	}
	fmt.Fprintln(w, "the federation has ended")
	if j.out == "" {
		return nil
	}
	return writeModel(j.out, model)
}

// follow waits for a federation that continues p's and that p's policy accepts on an operator's
// word, and makes p take part in it. successor asks for one.
func (j *joining) follow(ctx context.Context, p *party.Party,
	successor func(context.Context) (*federation.Federation, error), std streams,
) error {
	const waiting = "waiting for one that continues it"
	known := j.resumes != "" // and accepted before
	if !known {
		fmt.Fprintln(std.out, waiting)
	}
	told := map[string]bool{}
	for {
		next, err := successor(ctx)
		switch {
		case next != nil:
			show := *j
			show.folder, show.accept = j.folderOf(next.ID), true
			if before, err := show.accepted(); err != nil {
				return err
			} else if before.ID != next.ID {
				difference(std.out, "", p.Federation.Settled.Roster(), next.Settled.Roster())
				difference(std.out, "of the committee, ", p.Federation.Committee(), next.Committee())
			}
			p.Federation, p.Folder = next, show.folder
			j.reach(p)
			if err := os.MkdirAll(p.Folder, 0o700); err != nil {
				return err
			}
			return show.agree(next, std)
		case errors.Is(err, consent.ErrPolicy): // the operator may declare another
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !told[line] {
					told[line] = true
					fmt.Fprintln(std.out, "this identity does not continue:", line)
				}
			}
		case err != nil:
			p.Log.Warn("asking again for a federation that continues", "error", err.Error())
		}
		if known { // and cannot be had
			known = false
			fmt.Fprintf(std.out, "%s has ended, %s\n", p.Federation.Job.Name, waiting)
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
