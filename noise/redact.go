package noise

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/redact"
)

// Nothing that holds a secret prints it, in any format of fmt, in JSON or in logs.

// Format writes that the value is secret.
func (Source) Format(s fmt.State, _ rune) { redact.Format(s, "noise.Source") }

// MarshalJSON says that the value is secret.
func (Source) MarshalJSON() ([]byte, error) { return redact.JSON("noise.Source") }

// Format writes that the value is secret.
func (Sampler) Format(s fmt.State, _ rune) { redact.Format(s, "noise.Sampler") }

// MarshalJSON says that the value is secret.
func (Sampler) MarshalJSON() ([]byte, error) { return redact.JSON("noise.Sampler") }
