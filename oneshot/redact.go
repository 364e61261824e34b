package oneshot

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/redact"
)

// Nothing that holds a secret prints it, in any format of fmt, in JSON or in logs.

// Format writes that the value is secret.
func (Party) Format(s fmt.State, _ rune) { redact.Format(s, "oneshot.Party") }

// MarshalJSON says that the value is secret.
func (Party) MarshalJSON() ([]byte, error) { return redact.JSON("oneshot.Party") }

// Format writes that the value is secret.
func (Member) Format(s fmt.State, _ rune) { redact.Format(s, "oneshot.Member") }

// MarshalJSON says that the value is secret.
func (Member) MarshalJSON() ([]byte, error) { return redact.JSON("oneshot.Member") }

// Format writes that the value is secret.
func (Server) Format(s fmt.State, _ rune) { redact.Format(s, "oneshot.Server") }

// MarshalJSON says that the value is secret.
func (Server) MarshalJSON() ([]byte, error) { return redact.JSON("oneshot.Server") }
