package hushsum

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// counter is a Counter that lasts as long as its process.
type counter uint64

func (c *counter) Value() (uint64, error) { return uint64(*c), nil }

func (c *counter) Advance(to uint64) error {
	*c = counter(to)
	return nil
}

// copyStore has a store keep what another one keeps of a coordinator.
func copyStore(t *testing.T, to, from Store) {
	t.Helper()
	state, err := from.Load()
	if err == nil {
		err = to.Save(state)
	}
	var names []string
	for round := range 20 {
		for _, what := range []string{"model", "sum", "applied"} {
			names = append(names, fmt.Sprint(what, round))
		}
	}
	for _, name := range names {
		long, missing := from.Get(name)
		if errors.Is(missing, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, missing, to.Put(name, bufio.NewReader(long)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A store is one owner's: a second participant, member or coordinator is refused before it
// does anything, and a job that has ended gives it free.
func TestStoreLocked(t *testing.T) {
	j := newJob(t, testJob(), 7)
	name := filepath.Join(t.TempDir(), "state")
	for kind, store := range map[string]Store{"file": FileStore(name), "memory": new(MemoryStore)} {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			first, stop := context.WithCancel(ctx)
			defer stop()
			ended := make(chan error, 1)
			go func() {
				_, err := j.participant(0, store).Run(first)
				ended <- err
			}()
			_, conn, err := j.memory.Accept(ctx) // it has opened its store
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for i := range 4 {
				if _, err := j.participant(i, store).Run(ctx); !errors.Is(err, ErrLocked) {
					t.Errorf("party %d: %v", i, err)
				}
			}
			if _, err := j.coordinator(store).Run(ctx); !errors.Is(err, ErrLocked) {
				t.Errorf("coordinator: %v", err)
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			// Neither the first nor those that were refused have it.
			v, _, err := open(store, j.key, nil, "a", false)
			if err != nil {
				t.Errorf("after the end: %v", err)
			}
			v.Close()
		})
	}
}

// A party whose state is gone does not start anew by itself, as its coordinator does not.
// With its owner's word it does, with more than a number that it could have had.
func TestLostState(t *testing.T) {
	j := newJob(t, testJob(), 7)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	five := counter(5)
	p := j.participant(0, new(MemoryStore))
	p.Counter = &five
	if _, err := p.Run(ctx); !errors.Is(err, ErrOldState) {
		t.Errorf("a party: %v", err)
	}
	c := j.coordinator(new(MemoryStore))
	c.Counter = &five
	if _, err := c.Run(ctx); !errors.Is(err, ErrOldState) {
		t.Errorf("a coordinator: %v", err)
	}
	var field *ConfigError
	for _, spent := range []int{-1, 0, j.settled.Rounds() + 1} {
		p.Lost = &Lost{Rounds: spent, Number: 1}
		if _, err := p.Run(ctx); !errors.As(err, &field) || field.Path != "Lost.Rounds" {
			t.Errorf("%d rounds: %v", spent, err)
		}
	}
	p.Lost = &Lost{Rounds: 2}
	if _, err := p.Run(ctx); !errors.As(err, &field) || field.Path != "Lost.Number" {
		t.Errorf("without a number: %v", err)
	}
	p.Lost.Number = 7
	run, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _, _ = p.Run(run) }()
	_, conn, err := j.memory.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hello, err := conn.Receive(ctx)
	if err != nil || !strings.Contains(string(hello), `"least":7`) {
		t.Errorf("%q, %v", hello, err)
	}
}

// A counter without a store counts nothing.
func TestCounterAlone(t *testing.T) {
	var field *ConfigError
	_, _, err := open(nil, nil, new(counter), "a", false)
	if !errors.As(err, &field) || field.Path != "Counter" {
		t.Errorf("%v", err)
	}
	_, _, err = open(new(MemoryStore), nil, nil, "a", false)
	if !errors.As(err, &field) || field.Path != "Key" {
		t.Errorf("%v", err)
	}
}
