package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Signalled is the cause of a context that a signal ended. It counts as [context.Canceled].
type Signalled struct{ Signal os.Signal }

func (s *Signalled) Error() string { return "ended by the signal " + s.Signal.String() }

// Unwrap returns the context's own error, so that callers which look for it find it.
func (s *Signalled) Unwrap() error { return context.Canceled }

// UntilSignal returns a context that SIGINT (Ctrl-C) or SIGTERM ends, so that a command keeps its
// results so far. A second signal ends the process: its sender does not want to wait for that.
func UntilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&Signalled{s})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// InterruptedBy returns the exit code of a command that the end of ctx interrupted: 128 and the
// number of the signal, as shells have it.
func InterruptedBy(ctx context.Context) int {
	var s *Signalled
	if errors.As(context.Cause(ctx), &s) && s.Signal == syscall.SIGTERM {
		return ExitTerminated
	}
	return ExitInterrupted
}
