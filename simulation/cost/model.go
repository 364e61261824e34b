package cost

import "time"

// Load is the time of one core that the steps of a party take, without training and noise.
type Load struct {
	// In set-up.
	Announce, Keys, Members time.Duration
	// Upload is the material for a party's next round, a part of Members and of Submit too.
	Upload time.Duration
	// In a round: Begin opens the shares held for it; Submit masks.
	Begin, Submit, Sign, Reveal time.Duration
}

// SetUp is the time of set-up.
func (l Load) SetUp() time.Duration { return l.Announce + l.Keys + l.Members }

// Round is the time of a round.
func (l Load) Round() time.Duration { return l.Begin + l.Submit + l.Sign + l.Reveal }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Party predicts the time that a party in the middle of the session's roster works: it
// encapsulates to half of its neighbours.
func (s Session) Party(u Units) Load {
	s = s.settled()
	n, h, half := float64(s.Parties), float64(s.Neighbours), float64(s.Neighbours)/2
	var l Load
	l.Announce = seconds(u.KeyPair + u.Sign)
	keys := h*(u.Verify+u.Agree) + u.Hash*float64(s.keysBytes()) + u.Entry*n
	if s.sparse() {
		keys += u.Place * n
	}
	members := h*u.Chain + u.Listed*n
	if s.Classical {
		keys += members
		members = 0
	} else {
		keys += half*(u.Hash*kemKey+u.ParseKey+u.Encapsulate+u.Leaf+u.Node) + u.Sign
		members += half * (u.Verify + u.Decapsulate + u.Leaf + s.path()*u.Node)
	}
	share := float64(s.Threshold)*(u.Coefficient+h*u.Split) + h*u.Seal
	upload := 0.
	if s.Recovery {
		upload = share + h*(u.Step+u.Channels) + u.Seal
		members += upload
		l.Begin = seconds(h*(u.Channels+u.Open) + 2*u.Listed*n)
		l.Sign = seconds(u.Sign)
		l.Reveal = seconds(float64(s.Quorum)*(u.Verify+u.Statement*float64(set(s.Parties))) + h*u.Open)
	}
	d := float64(s.Length)
	submit := h*(u.Step+u.Derive+u.Seed+d*u.Mask) + d*u.Pack
	if s.Recovery {
		submit += share + upload + u.Seed + d*u.Mask
	}
	l.Keys, l.Members, l.Upload, l.Submit = seconds(keys), seconds(members), seconds(upload),
		seconds(submit)
	return l
}

// ServerLoad is the time of one core that the server works.
type ServerLoad struct {
	SetUp time.Duration
	// Submissions is for telling who takes part and taking what they submit, Certify for
	// telling who is in the sum, and for signatures, and Sum for shares, for rebuilding
	// secrets and for taking masks off.
	Submissions, Certify, Sum time.Duration
}

// Round is the time of a round.
func (l ServerLoad) Round() time.Duration { return l.Submissions + l.Certify + l.Sum }

// Server predicts the time that the server works.
func (s Session) Server(u Units) ServerLoad {
	s = s.settled()
	n, h, d := float64(s.Parties), float64(s.Neighbours), float64(s.Length)
	half, bytes := h/2, s.Wire()
	// Looking up a party's neighbours, and which of them are in a set.
	find, among := h*u.Near, h*u.Listed
	if !s.sparse() {
		find = among
	}
	// What the keys of all begin with is put together once.
	own := bytes.SetUpSent + bytes.SetUpReceived - int64(s.keysBytes())
	setUp := n * (u.Verify + u.Copy*float64(own))
	if !s.Classical {
		// The digests of keys: as they arrive, for the digest of all, and in the list of
		// all. The trees over ciphertexts: as they arrive, and for their paths.
		setUp += n * (u.Verify + u.ParseKey + 3*u.Hash*kemKey + 3*find +
			half*(2*(u.Leaf+u.Node)+s.path()*u.Climb))
	}
	var submissions float64
	if s.Recovery {
		setUp += n * (h*u.Take + 2*find + 3*among)
		// Who can take part, and their neighbours; then shares and material.
		submissions += n * (3*find + 8*among + h*u.Give + 2*h*u.Take)
		certify := n * (among + h*u.Give + u.Verify + u.Statement*float64(set(s.Parties)))
		if s.sparse() {
			certify += n * float64(s.Quorum) * u.Attach
		}
		secret := float64(s.Threshold)*u.Rebuild + 2*u.Derive
		if s.sparse() { // everybody's holders are others
			secret += u.Combine + float64(s.Threshold*s.Threshold)*u.Difference
		} else {
			secret += float64(s.Threshold) * u.Leave
		}
		present, gone := n-float64(s.Dropped), float64(s.Dropped)
		sum := present*(h*u.Reveal+among+secret+u.Seed+d*u.Mask) +
			gone*(secret+u.Open+h*(u.Derive+u.Seed+d*u.Mask))
		l := ServerLoad{Certify: seconds(certify), Sum: seconds(sum)}
		l.SetUp, l.Submissions = seconds(setUp), seconds(submissions+n*d*u.Add)
		return l
	}
	return ServerLoad{SetUp: seconds(setUp), Submissions: seconds(submissions + n*d*u.Add)}
}

// Training returns how long a number of steps of gradient descent over the given number of
// rows takes, for a model with the given number of weights.
func Training(u Units, rows, weights, steps int) time.Duration {
	return seconds(float64(rows) * float64(weights) * float64(steps) * u.Training)
}
