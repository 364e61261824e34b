package main

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"io"
	"path/filepath"

	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

// trainer returns what makes a party's updates: a command, or the training that the federation
// declares, or its queries, on this party's rows.
func (j *joining) trainer(
	ctx context.Context, f *federation.Federation, identity crypto.Signer, folder string, std streams,
) (party.Trainer, error) {
	switch declared := f.Settled.Trains(); {
	case f.Questions() != nil && j.rows.Rows == "":
		return nil, errors.New("the federation asks queries about rows; give --rows instead of a " +
			"command")
	case f.Questions() != nil:
		rows, err := answers.ReadRows(std.out, f.Job, f.Questions(),
			func(s *query.Schema) (*query.Rows, *query.Report, error) { return j.rows.Read(ctx, s) })
		if err != nil {
			return nil, err
		}
		return party.NewAsked(f, rows)
	case j.rows.Header != "":
		return nil, errors.New("--header is for federations that ask queries; leave it out")
	case j.rows.SQL != "" && !declared:
		return nil, errors.New("--sql is for federations that ask queries or declare training; " +
			"leave it out")
	case declared && j.rows.Rows == "":
		return nil, errors.New("the federation declares how parties train; give --rows instead of " +
			"a command")
	case declared:
		own, err := j.rows.ReadTraining(ctx, f.Job)
		if err != nil {
			return nil, err
		}
		i, found := f.Settled.Roster().Index(identity.Public().(ed25519.PublicKey))
		if !found {
			return nil, errors.New("this identity's key is not in the roster")
		}
		return party.NewDeclared(f, i, own, folder)
	case j.rows.Rows != "":
		return nil, errors.New("the federation leaves training to the parties; give --train instead of " +
			"--rows")
	case j.gradients != "":
		return party.NewGradients(ctx, f, j.gradients, filepath.Join(folder, "work"), j.records, std.err)
	}
	return &party.Command{
		Line:   j.train,
		Folder: filepath.Join(folder, "work"),
		Limit:  j.limit,
		Out:    std.err,
	}, nil
}

// given counts a flag that is given.
func given(flag string) int {
	if flag == "" {
		return 0
	}
	return 1
}

// over ends what a trainer has started.
func over(t party.Trainer) {
	if c, ok := t.(io.Closer); ok {
		c.Close()
	}
}
