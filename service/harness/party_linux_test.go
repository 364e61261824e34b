package harness

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/store"
)

// This file has the parties of a cluster, within this process, and damage to what they keep.

// taking is a party, which can be stopped and started again.
type taking struct {
	index    int
	identity ed25519.PrivateKey
	folder   string // of its state, its lines, its receipts and its book
	stop     context.CancelFunc
	ended    chan error // has why the party ended
	hurt     bool       // it may end for damage that it names
}

func (t *taking) name() string { return fmt.Sprint("party-", t.index) }

func (t *taking) book() *consent.Book {
	key := sealed
	return &consent.Book{File: filepath.Join(t.folder, "book"), Key: &key}
}

// left returns how many submissions the party's book counts.
func (t *taking) left() (n int, err error) {
	entries, err := t.book().Entries()
	for _, e := range entries {
		for _, l := range e.Left {
			n += l.Count
		}
	}
	return n, err
}

// joins starts a party.
func (c *cluster) joins(ctx context.Context, t *taking) {
	c.Helper()
	var addresses []string
	for _, way := range c.ways[t.index] {
		addresses = append(addresses, "http://"+way.Address())
	}
	k := t.index % len(addresses)
	addresses = append(slices.Clone(addresses[k:]), addresses[:k]...)
	server, err := party.NewServer(strings.Join(addresses, ","), "", t.identity)
	if err != nil {
		c.Fatal(err)
	}
	key, before := sealed, time.Now()
	p := party.Party{
		Federation: c.fed,
		Identity:   t.identity,
		Server:     server,
		Folder:     t.folder,
		Key:        &key,
		Book:       t.book(),
		Trainer: party.TrainerFunc(func(_ context.Context, w *party.Work) (*party.Update, error) {
			c.model(w.Round, w.File, t.name())
			c.saw(t.index, shows{"told", t.name()}, before, saw{shown: shown{round: w.Round}})
			before = time.Now()
			v := make([]float64, length)
			for k := range v {
				v[k] = float64((w.Round*31+t.index*7+k)%11-5) / 50
			}
			return &party.Update{Vector: v}, nil
		}),
		Submitted: func(round int, values [][]uint64) {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			of := [2]int{round, t.index}
			if had := c.submitted[of]; had != nil && !slices.EqualFunc(had, values, slices.Equal) {
				c.wrong = append(c.wrong, fmt.Sprintf("%s submits twice in round %d", t.name(), round))
			}
			c.submitted[of] = values
		},
	}
	ctx, t.stop = context.WithCancel(ctx)
	t.ended = make(chan error, 1)
	c.group.Go(func() {
		_, err := p.Run(ctx)
		if err != nil && ctx.Err() == nil && !(t.hurt && isNamed(err)) {
			c.Errorf("%s ends: %v", t.name(), err)
		}
		t.ended <- err
	})
}

// isNamed reports whether an error says that what a party keeps is damaged.
func isNamed(err error) bool {
	return slices.ContainsFunc([]error{party.ErrStored, consent.ErrBook, store.ErrStore,
		store.ErrOldState, chain.ErrFile}, func(known error) bool { return errors.Is(err, known) })
}

// partyFile has a party stop, a file of its folder damaged, and the party start again: it goes on,
// and neither submits twice in a round nor counts less; or it says what is damaged, and goes on
// once its owner has put that back.
var partyFile = strike{"a file of a party is damaged", func(c *cluster, hold time.Duration) error {
	t := c.takes[c.random.IntN(parties)]
	t.stop()
	<-t.ended
	before, err := t.left()
	if err != nil {
		return err
	}
	kept := t.folder + ".kept"
	if err := os.CopyFS(kept, os.DirFS(t.folder)); err != nil {
		return err
	}
	d, is := damageIn(t.folder, c.random, func(name string) bool {
		return !strings.HasSuffix(name, ".lock") && !strings.HasPrefix(name, "receipts/") // not read
	})
	if !is {
		return errors.New("there is nothing to damage")
	}
	c.Logf("%s: %s", t.name(), d)
	if err := d.Do(t.folder); err != nil {
		return err
	}
	t.hurt = true
	c.joins(c.life, t)
	select {
	case err := <-t.ended:
		c.Logf("%s ends: %v", t.name(), err)
		if err := os.RemoveAll(t.folder); err != nil {
			return err
		}
		if err := os.CopyFS(t.folder, os.DirFS(kept)); err != nil {
			return err
		}
		t.hurt = false
		c.joins(c.life, t)
	case <-time.After(hold):
	}
	if after, err := t.left(); err == nil && after < before { // else the file is damaged since
		c.Errorf("after %s %s counts %d submissions, and counted %d", d, t.name(), after, before)
	}
	return os.RemoveAll(kept)
}}

// Files of parties are damaged, one after another, while rounds go on.
func TestPartyFiles(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kind{nodes: 1}, random(t))
	times := suite.Size(2, 6, 60, 600)
	for range times {
		c.struck(partyFile, 500*time.Millisecond)
	}
	rounds, ops := c.finish()
	t.Logf("%d times, %d sums, %d operations, %d rounds lost", times, rounds, ops, c.now().Lost)
}
