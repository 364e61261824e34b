package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/service/record"
)

const about = `It asks a node at its page's address, with a token of an operator who may operate, from --token-file
or HUSHSUM_TOKEN, or with --identity FILE of such an operator's key.`

func backup(ctx context.Context, args []string, std streams) error {
	f := flags("backup", "backup FILE [flags]", `
It writes all federations of a server, of one node or several, to one file while rounds continue: a
snapshot of each federation, with its model, session, ledger and audit log. All of it is verified.
The file is sealed under the nodes' seal key, which is not in it: keep that elsewhere.

`+about, std)
	o, name, err := parseOperator(f, args)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and no backup replaces another; give a new name, such as one "+
			"with the date", name)
	}
	if err != nil {
		return err
	}
	size, err := o.backup(ctx, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	fmt.Fprintf(std.out, "%s has %d bytes; it opens only with the nodes' seal key\n", name, size)
	return nil
}

// backup writes a backup to a new file.
func (o *operator) backup(ctx context.Context, file *os.File) (size int64, err error) {
	answer, err := o.send(ctx, http.MethodGet, "/v1/backup", nil, nil, "")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if size, err = io.Copy(file, answer.Body); err != nil {
		return 0, fmt.Errorf("%w; the node's log says why it was interrupted", err)
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return size, record.ReadBackup(file)
}

func restore(ctx context.Context, args []string, std streams) error {
	f := flags("restore", "restore FILE [flags]", `
It restores a backup to a server without federations: one or several nodes, running with the seal
key of the server that made the backup. The file is verified first, and nothing is changed if it was
truncated or altered, or was sealed under another key. Federations continue at once: rounds that
parties know and the backup does not are charged to the budget and count as lost.

`+about, std)
	o, name, err := parseOperator(f, args)
	if err != nil {
		return err
	}
	var restored struct {
		IDs []string `json:"ids"`
	}
	if err := o.upload(ctx, "/v1/restore", name, &restored); err != nil {
		return err
	}
	for _, id := range restored.IDs {
		fmt.Fprintln(std.out, id)
	}
	return nil
}

// upload sends a backup to a server, once it is verified.
func (o *operator) upload(ctx context.Context, path, name string, into any) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := record.ReadBackup(file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var body io.ReadSeeker = file
	var signed []byte
	if o.identity != nil { // a signature is over all of it
		if signed, err = io.ReadAll(file); err != nil {
			return err
		}
		body = bytes.NewReader(signed)
	}
	answer, err := o.send(ctx, http.MethodPost, path, body, signed, "")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err == nil {
		err = strict.JSON(text, into)
	}
	return err
}
