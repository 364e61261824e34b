package cost_test

import (
	"crypto/ed25519"
	"runtime"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation/cost"
)

// tableSession is the session of Table A.1 of "A Practical Approach to Federated Learning"
// (the thesis): 105 weights, the complete graph, X25519 alone, nobody drops out.
func tableSession(n int, roster *keyexchange.Roster) (*protocol.Config, cost.Session) {
	return &protocol.Config{
			Label:     "table A.1",
			Roster:    roster,
			Layout:    masking.Layout{{Length: 105, Bits: 24}},
			Classical: true,
		}, cost.Session{
			Parties:   n,
			Length:    105,
			Bits:      24,
			Classical: true,
		}
}

// measureTable measures one user and the server; the other users are stand-ins that share
// an X25519 key and submit zeros.
func measureTable(t testing.TB, config *protocol.Config, signers []ed25519.PrivateKey) measured {
	n := len(signers)
	a := &alone{t: t, config: config, signers: signers, self: n / 2, all: wire.FullSet(n)}
	var err error
	a.digest, err = config.Digest()
	a.must(err)
	server, err := protocol.NewServer(config)
	a.must(err)
	private, err := keyexchange.GenerateKey(nil)
	a.must(err)
	public, err := private.Public()
	a.must(err)
	var m measured
	began := worked()
	lap := func() (d float64) {
		now := worked()
		d = now.Sub(began).Seconds()
		began = now
		return d
	}
	keys := &wire.Keys{Announced: a.all}
	for i, signer := range signers {
		own := wire.Announce{Key: public}
		if i == a.self {
			hello := a.work(func() (_ []byte, err error) {
				if a.client, err = protocol.NewClient(config, signer, nil); err != nil {
					return nil, err
				}
				return a.client.Announce(), nil
			})
			parsed, err := wire.ParseAnnounce(hello[wire.HeaderSize:], false)
			a.must(err)
			own = *parsed
		} else {
			own.Signature, err = keyexchange.SignKey(signer, a.digest, i, public, nil)
			a.must(err)
		}
		h := wire.Header{Type: wire.TypeAnnounce, Session: a.digest, Sender: uint32(i)}
		a.must(server.Receive(i, own.Append(h.Append(nil))))
		keys.Entries = append(keys.Entries, wire.KeyEntry{Key: own.Key, Signature: own.Signature})
	}
	envelopes, err := server.Keys()
	a.must(err)
	a.work(func() ([]byte, error) { return a.client.Receive(envelopes[a.self].Message) })
	m.setUp, a.took = a.took, 0
	keysDigest := hashed(labels.Keys, a.digest[:], keys.AppendShared(nil))
	a.session = hashed(labels.Session, keysDigest[:], a.all.Bytes())

	packed := make([]byte, config.Layout.PackedSize())
	masked := make([][]byte, n)
	for i := range masked {
		h := wire.Header{Type: wire.TypeMasked, Session: a.session, Round: 1, Sender: uint32(i)}
		masked[i] = append(h.Append(nil), packed...)
	}
	defer uncollected()()
	lap()
	envelopes, err = server.Begin(nil)
	serverTook := lap()
	a.must(err)
	a.work(func() ([]byte, error) { return a.client.Receive(envelopes[a.self].Message) })
	masked[a.self] = a.work(func() ([]byte, error) {
		return a.client.Submit(nil, make([]uint64, config.Layout[0].Length))
	})
	m.round = a.took
	lap()
	for i := range masked {
		if err := server.Receive(i, masked[i]); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := server.Sum()
	serverTook += lap()
	a.must(err)
	// Masks of pairs do not cancel: the others' are not in the sum.
	if len(sum[0]) != config.Layout[0].Length || sum[0][0] == 0 && sum[0][1] == 0 && sum[0][2] == 0 {
		t.Fatalf("a sum of %d coordinates that begins with zeros", len(sum[0]))
	}
	m.serverRound = seconds(serverTook)
	return m
}

// Table A.1's columns: exchange of keys and masking of one user, next to what is predicted,
// the server's round, and 50 steps of training on 200 rows. 200 users take too little time
// to be compared, less than it takes until memory is collected once.
func TestPredictionsTableA1(t *testing.T) {
	suite.OnlyTiming(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	rows := &learning.Dataset{X: make([]float64, 200*104), Features: 104, Labels: make([]int, 200)}
	model := learning.Logistic{Features: rows.Features}
	for _, n := range []int{200, 1000, 3000, 5000} {
		roster, signers := people(t, n)
		config, session := tableSession(n, roster)
		var o observed
		check(t, n, func() []row {
			o.timed(t, 1, 3, func() measured { return measureTable(t, config, signers) })
			began := worked()
			_, err := (&learning.SGD{Rate: 2, Steps: 50}).Train(model, model.Init(0), rows, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("n = %6d  measured, ms: server %.2f, keys %.2f, training %.2f, masking %.2f", n,
				ms(o.serverRound), ms(o.setUp), ms(worked().Sub(began)), ms(o.round))
			if n < 1000 {
				return nil
			}
			return timesOfParty(session, o.units, &o.measured)
		})
	}
}
