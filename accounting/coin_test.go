package accounting

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// A coin that a party keeps to itself amplifies against the server as a schedule does against
// the public, and both together multiply.
func TestSecretCoin(t *testing.T) {
	for _, family := range Families() {
		schedule := Round{
			Family: family, Shares: 5, Honest: 5, Rate: 0.1, HiddenSchedule: true,
			Update: stated(family, 40, Sensitivity{L2: 20, Dimension: 1}),
		}
		coin := schedule
		coin.Rate, coin.SecretRate, coin.HiddenSchedule = 1, 0.1, false
		_, want, err := schedule.Views(7, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		server, public, err := coin.Views(7, 1e-6)
		if err != nil || server.Bare().Bound != want.Bare().Bound ||
			public.Bare().Bound != want.Bare().Bound {
			t.Errorf("%v: %v and %v (%v), want %v", family, server, public, err, want)
		}
		whole := coin
		whole.SecretRate = 0
		if all, err := whole.Spent(ServerView, 7, 1e-6); err != nil ||
			!(server.Bare().Upper < all.Bare().Upper/2) {
			t.Errorf("%v: %v with the coin, %v without (%v)", family, server, all, err)
		}
		// A tenth of a half is a twentieth.
		both, once := coin, schedule
		both.Rate, both.HiddenSchedule = 0.5, true
		once.Rate = 0.05
		a, err := both.Spent(PublicView, 7, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := once.Spent(PublicView, 7, 1e-6); err != nil ||
			math.Abs(a.Bare().Upper-b.Bare().Upper) > 1e-9*b.Bare().Upper {
			t.Errorf("%v: coin and schedule %v, a schedule of both %v (%v)", family, a, b, err)
		}
	}
}

// Overruns go to δ, as the distance of samplers from their law does.
func TestOverrun(t *testing.T) {
	r := exampleRound()
	r.TableDistance, r.Samples = 1e-12, 1000
	want, err := r.Spent(ServerView, 10, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	r.TableDistance, r.Samples, r.Overrun = 0, 0, 1e-9
	got, err := r.Spent(ServerView, 10, 1e-6)
	if err != nil || math.Abs(got.Bare().Upper-want.Bare().Upper) > 1e-9*want.Bare().Upper {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	r.Overrun = 1e-6
	if s, err := r.Spent(ServerView, 10, 1e-6); err != nil || s.Bare().Reason != reasonTable {
		t.Errorf("%+v, %v", s, err)
	}
	// All are saved, and left out where they are not there.
	r.SecretRate, r.Failure = 0.25, 1e-12
	l := mustLedger(t, ServerView, Target{100, 1e-3})
	if err := l.SpendRound(r, "ann"); err != nil {
		t.Fatal(err)
	}
	saved, err := json.Marshal(l)
	var loaded Ledger
	if err != nil || json.Unmarshal(saved, &loaded) != nil ||
		loaded.accounts["ann"][0].key() != l.accounts["ann"][0].key() {
		t.Errorf("%s, %v", saved, err)
	}
	plain, err := json.Marshal(exampleRound())
	if err != nil || strings.Contains(string(plain), "Secret") ||
		strings.Contains(string(plain), "Overrun") || strings.Contains(string(plain), "Failure") {
		t.Errorf("%s, %v", plain, err)
	}
	for _, change := range []func(*Round){
		func(r *Round) { r.SecretRate = -0.1 }, func(r *Round) { r.SecretRate = 1.1 },
		func(r *Round) { r.Overrun = -1 }, func(r *Round) { r.Overrun = 1 },
		func(r *Round) { r.Overrun = math.NaN() },
		func(r *Round) { r.Failure = -1 }, func(r *Round) { r.Failure = 1 },
		func(r *Round) { r.Failure = math.NaN() },
	} {
		bad := exampleRound()
		change(&bad)
		if _, err := bad.Spent(ServerView, 1, 1e-6); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A failure on which no client has any influence adds its probability to δ once a round, without
// the factor 1 + e^ε of what differs from the figures.
func TestFailure(t *testing.T) {
	const rounds, p, delta = 10, 5e-8, 1e-6
	for _, family := range []Family{FamilyDiscreteGaussian, FamilyDiscreteLaplace} {
		r := exampleRound()
		r.TableDistance, r.Samples = 0, 0
		if family == FamilyDiscreteLaplace {
			r.Family = family
			r.Update.ShareSigma, r.Update.SumScale = 0, 4*r.Update.Sensitivity.L2
		}
		at := func(delta float64) Figures {
			s, err := r.Spent(ServerView, rounds, delta)
			if err != nil {
				t.Fatal(err)
			}
			return s.Bare()
		}
		less, more := at(delta-rounds*p), at(delta+rounds*p)
		r.Failure = p
		got := at(delta)
		if math.Abs(got.Upper-less.Upper) > 1e-6*less.Upper || got.Upper < less.Upper {
			t.Errorf("%v: at most %v, want %v", family, got.Upper, less.Upper)
		}
		if math.Abs(got.Lower-more.Lower) > 1e-6*more.Lower || got.Lower > more.Lower {
			t.Errorf("%v: at least %v, want %v", family, got.Lower, more.Lower)
		}
		r.Failure = delta / rounds
		if s := at(delta); !math.IsInf(s.Upper, 1) || s.Reason != reasonTable {
			t.Errorf("%v: %+v", family, s)
		}
	}
}
