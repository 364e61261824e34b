package simulation

import "github.com/hushsum/hushsum/training"

// Rules of parties and ways to clip: see package training.
type (
	ClientKind = training.ClientKind
	ClientRule = training.ClientRule
	ClipKind   = training.ClipKind
	Clipping   = training.Clipping
)

// The rules of parties, and what is clipped.
const (
	FedAvg         = training.FedAvg
	FedProx        = training.FedProx
	SCAFFOLD       = training.SCAFFOLD
	FedGA          = training.FedGA
	NoClip         = training.NoClip
	DifferenceClip = training.DifferenceClip
	ModelClip      = training.ModelClip
)
