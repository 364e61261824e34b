package masking

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/redact"
)

// Nothing that holds a secret prints it, in any format of fmt, in JSON or in logs.

// Format writes that the value is secret.
func (Seed) Format(s fmt.State, _ rune) { redact.Format(s, "masking.Seed") }

// MarshalJSON says that the value is secret.
func (Seed) MarshalJSON() ([]byte, error) { return redact.JSON("masking.Seed") }

// Format writes that the value is secret.
func (Vector) Format(s fmt.State, _ rune) { redact.Format(s, "masking.Vector") }

// MarshalJSON says that the value is secret.
func (Vector) MarshalJSON() ([]byte, error) { return redact.JSON("masking.Vector") }

// Format writes that the value is secret.
func (Intake) Format(s fmt.State, _ rune) { redact.Format(s, "masking.Intake") }

// MarshalJSON says that the value is secret.
func (Intake) MarshalJSON() ([]byte, error) { return redact.JSON("masking.Intake") }

// Format writes that the value is secret.
func (Masks) Format(s fmt.State, _ rune) { redact.Format(s, "masking.Masks") }

// MarshalJSON says that the value is secret.
func (Masks) MarshalJSON() ([]byte, error) { return redact.JSON("masking.Masks") }
