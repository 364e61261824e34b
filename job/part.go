package job

import (
	"crypto"
	"io"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/masking"
)

// Part returns what the party with an identity of the roster knows of the job. random serves keys,
// masks, noise and coins (nil: crypto/rand). Part fails with errors of the accountant.
func (s *Settled) Part(identity crypto.Signer, random io.Reader) (drive.PartSettings, error) {
	limits, err := s.Limits(identity.Public())
	out := drive.PartSettings{
		Identity: identity,
		Random:   random,
		Limits:   limits,
		Session:  s.Config,
		Label:    s.Label(),
		Sums:     s.oneshot,
		Layout:   s.Layout(),
		After:    drive.Time(s.SubmitAfter()),
		Luck:     s.Hidden(),
	}
	if s.mechanism != nil {
		out.Blank = func(_ uint64, v *masking.Vector) error { return s.Blank(v, random) }
	}
	return out, err
}

// Member returns what the member with an identity of the committee knows of the job. random is as
// for [Settled.Part].
func (s *Settled) Member(identity crypto.Signer, random io.Reader) drive.PartSettings {
	return drive.PartSettings{
		Identity: identity,
		Random:   random,
		Limits:   drive.Limits{Rounds: uint64(s.Rounds())},
		Sums:     s.oneshot,
		Member:   true,
	}
}
