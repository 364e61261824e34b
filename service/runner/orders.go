package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/service/record"
)

// This file carries out operators' orders.

// Errors of orders.
var (
	// ErrState: the federation's state does not permit that.
	ErrState = errors.New("runner: the federation has ended")
	// ErrParty: the roster has no party with that name.
	ErrParty = errors.New("runner: the roster has no party of that name")
	// ErrStale: what the order is based on has changed.
	ErrStale = errors.New("runner: since the operator looked there was another order, or the " +
		"federation paused, ended or left a party out by itself; look again")
)

// By says who gives an order, and what the operator has seen.
type By struct {
	Who string
	// Seen is the [Status].Orders that the order is based on; empty: any. If it is not the present one
	// the order fails with [ErrStale].
	Seen string
}

// ordersOf returns [Status].Orders after a number of orders.
func ordersOf(number uint64, paused, ended bool, leftOut ...int) string {
	digest := sha256.Sum256(fmt.Append(nil, paused, ended, leftOut))
	return fmt.Sprintf("%d-%x", number, digest[:8])
}

// ordersAt returns [Status].Orders.
func (r *Runner) ordersAt(at drive.Status) string {
	var leftOut []int
	for i := range r.parties {
		if r.drive.At(Peer{Index: i}).Excluded {
			leftOut = append(leftOut, i)
		}
	}
	return ordersOf(r.orders, at.Paused, at.Ended != "", leftOut...)
}

// Pause lets no further round begin; the open one goes on to its sum.
func (r *Runner) Pause(ctx context.Context, by By) error {
	return r.order(ctx, by, drive.Order{Do: drive.Pause})
}

// Resume ends a pause.
func (r *Runner) Resume(ctx context.Context, by By) error {
	return r.order(ctx, by, drive.Order{Do: drive.Resume})
}

// Exclude leaves a party out of all later sums, until it is readmitted. It fails with [ErrParty].
func (r *Runner) Exclude(ctx context.Context, by By, party string) error {
	return r.ofParty(ctx, by, party, drive.Exclude)
}

// Readmit ends an exclusion, including that of a party that has spoilt a round. It fails with
// [ErrParty].
func (r *Runner) Readmit(ctx context.Context, by By, party string) error {
	return r.ofParty(ctx, by, party, drive.Readmit)
}

func (r *Runner) ofParty(ctx context.Context, by By, party string, do drive.OrderKind) error {
	i := slices.Index(r.names, party)
	if i < 0 {
		return fmt.Errorf("%w: %.60q", ErrParty, party)
	}
	return r.order(ctx, by, drive.Order{Do: do, Party: i})
}

// EndNow ends the federation; an open round gets no sum. The end is final: to end a federation that
// has ended succeeds, whatever the operator has seen.
func (r *Runner) EndNow(ctx context.Context, by By) error {
	return r.order(ctx, by, drive.Order{Do: drive.End})
}

// errDone: the order changes nothing.
var errDone = errors.New("runner: the federation has ended already")

// order has the federation carry out an operator's order, and returns once that is recorded. What
// the operator has seen is compared under the same lock: of two orders that are based on the same
// status one is refused.
func (r *Runner) order(ctx context.Context, by By, o drive.Order) error {
	o.Why = "by " + by.Who
	if o.Do == drive.End {
		o.Why = "ended by " + by.Who
	}
	err := r.host.Decide(ctx, func(lead drive.Lead, now drive.Time) error {
		at := lead.Status()
		switch {
		case at.Ended != "" && o.Do == drive.End:
			return errDone
		case by.Seen != "" && by.Seen != r.ordersAt(at):
			return ErrStale
		case at.Ended != "":
			return ErrState
		}
		lead.Order(now, o)
		if ready, _ := lead.Ready(); ready.Save { // an order without effect is not recorded
			r.orders++
		}
		return nil
	}, nil)
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// Forget has the record of a federation that has ended erase its models and states, and stops the
// runner, whose Run returns record.ErrForgotten. It fails with [ErrRunning] or [ErrStale].
func (r *Runner) Forget(ctx context.Context, by By) error {
	ledger, err := r.Before(ctx)
	if err != nil {
		return err
	}
	return r.host.With(ctx, operator, func(lead drive.Lead, _ drive.Time) error {
		if by.Seen != "" && by.Seen != r.ordersAt(lead.Status()) {
			return ErrStale
		}
		ctx := context.WithoutCancel(ctx)
		err := r.Hold.Forget(ctx, r.Federation.Job.Name, ledger, "by "+by.Who)
		if err == nil {
			err = record.ErrForgotten
		}
		r.host.Stop(err)
		if errors.Is(err, record.ErrForgotten) {
			return nil
		}
		return err
	})
}
