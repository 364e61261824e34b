package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

// WriteBackup writes all federations to a sealed file, while they go on. It fails with page.ErrKeys
// if the file of seal keys cannot be read, since the backup would be sealed under a key that may be
// lost.
func (n *Node) WriteBackup(ctx context.Context, w io.Writer) error {
	if err := n.rereadKeys(true); err != nil {
		return fmt.Errorf("%w: %w", page.ErrKeys, err)
	}
	return n.records.Backup(ctx, w, runner.Named)
}

// ReadBackup fills an empty record from a backup, and returns the federations. It fails with the
// errors of package record. If the file or the record is the cause it fails before anything is
// changed.
func (n *Node) ReadBackup(ctx context.Context, backup io.Reader) (ids []string, err error) {
	// It is read twice, first to verify all of it.
	file, err := os.CreateTemp(n.Folder, "restore-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	if _, err := io.Copy(file, backup); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	ids, err = n.records.Restore(ctx, file)
	if err == nil {
		n.Log.Warn("a backup was restored", "federations", len(ids))
		n.find(ids) // so that the next request for one finds it
	}
	return ids, err
}
