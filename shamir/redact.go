package shamir

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/redact"
)

// Nothing that holds a secret prints it, in any format of fmt, in JSON or in logs.

// Format writes that the value is secret.
func (Secret) Format(s fmt.State, _ rune) { redact.Format(s, "shamir.Secret") }

// MarshalJSON says that the value is secret.
func (Secret) MarshalJSON() ([]byte, error) { return redact.JSON("shamir.Secret") }

// Format writes that the value is secret.
func (Share) Format(s fmt.State, _ rune) { redact.Format(s, "shamir.Share") }

// MarshalJSON says that the value is secret.
func (Share) MarshalJSON() ([]byte, error) { return redact.JSON("shamir.Share") }

// Format writes that the value is secret.
func (PackedShare) Format(s fmt.State, _ rune) { redact.Format(s, "shamir.PackedShare") }

// MarshalJSON says that the value is secret.
func (PackedShare) MarshalJSON() ([]byte, error) { return redact.JSON("shamir.PackedShare") }
