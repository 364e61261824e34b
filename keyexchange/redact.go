package keyexchange

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/redact"
)

// Nothing that holds a secret prints it, in any format of fmt, in JSON or in logs.

// Format writes that the value is secret.
func (Chain) Format(s fmt.State, _ rune) { redact.Format(s, "keyexchange.Chain") }

// MarshalJSON says that the value is secret.
func (Chain) MarshalJSON() ([]byte, error) { return redact.JSON("keyexchange.Chain") }

// Format writes that the value is secret.
func (Channels) Format(s fmt.State, _ rune) { redact.Format(s, "keyexchange.Channels") }

// MarshalJSON says that the value is secret.
func (Channels) MarshalJSON() ([]byte, error) { return redact.JSON("keyexchange.Channels") }

// Format writes that the value is secret.
func (MaskSeed) Format(s fmt.State, _ rune) { redact.Format(s, "keyexchange.MaskSeed") }

// MarshalJSON says that the value is secret.
func (MaskSeed) MarshalJSON() ([]byte, error) { return redact.JSON("keyexchange.MaskSeed") }

// Format writes that the value is secret.
func (PairSecret) Format(s fmt.State, _ rune) { redact.Format(s, "keyexchange.PairSecret") }

// MarshalJSON says that the value is secret.
func (PairSecret) MarshalJSON() ([]byte, error) { return redact.JSON("keyexchange.PairSecret") }

// Format writes that the value is secret.
func (PrivateKey) Format(s fmt.State, _ rune) { redact.Format(s, "keyexchange.PrivateKey") }

// MarshalJSON says that the value is secret.
func (PrivateKey) MarshalJSON() ([]byte, error) { return redact.JSON("keyexchange.PrivateKey") }

// Format writes that the value is secret.
func (SealKey) Format(s fmt.State, _ rune) { redact.Format(s, "keyexchange.SealKey") }

// MarshalJSON says that the value is secret.
func (SealKey) MarshalJSON() ([]byte, error) { return redact.JSON("keyexchange.SealKey") }

// Format writes that the value is secret.
func (Agreement) Format(s fmt.State, _ rune) { redact.Format(s, "keyexchange.Agreement") }

// MarshalJSON says that the value is secret.
func (Agreement) MarshalJSON() ([]byte, error) { return redact.JSON("keyexchange.Agreement") }

// Format writes that the value is secret.
func (DecapsulationKey) Format(s fmt.State, _ rune) {
	redact.Format(s, "keyexchange.DecapsulationKey")
}

// MarshalJSON says that the value is secret.
func (DecapsulationKey) MarshalJSON() ([]byte, error) {
	return redact.JSON("keyexchange.DecapsulationKey")
}
