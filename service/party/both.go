package party

import (
	"context"
	"crypto/ed25519"
	"path/filepath"

	"github.com/hushsum/hushsum/drive"
)

// both takes part, and helps next to it if the party is in the committee too. absent is as of run.
// What ends one of the two ends the other.
func (r *running) both(
	ctx context.Context, settings drive.PartSettings,
) (absent, err error) {
	sums := r.Federation.Settled.Oneshot()
	public, _ := r.Identity.Public().(ed25519.PublicKey)
	if sums == nil {
		return r.run(ctx, kindParty, settings)
	}
	if _, helps := sums.Committee.Index(public); !helps {
		return r.run(ctx, kindParty, settings)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := Member{
		Federation: r.Federation,
		Identity:   r.Identity,
		Server:     r.Server,
		Folder:     filepath.Join(r.Folder, "committee"),
		Key:        r.Key,
		Policy:     r.Policy,
		Log:        r.Log.With("role", "member"),
		Spent:      r.Spent,
	}
	helped := make(chan error, 1)
	go func() {
		err := m.Run(ctx)
		if err != nil {
			cancel(err)
		}
		helped <- err
	}()
	absent, err = r.run(ctx, kindParty, settings)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // the member's reason, or that of whoever ended both
	} else if err != nil {
		cancel(err)
	}
	if failed := <-helped; err == nil {
		err = failed
	}
	return absent, err
}
