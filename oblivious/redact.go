package oblivious

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/redact"
)

// Nothing that holds a secret prints it, in any format of fmt, in JSON or in logs.

// Format writes that the value is secret.
func (Transfer) Format(s fmt.State, _ rune) { redact.Format(s, "oblivious.Transfer") }

// MarshalJSON says that the value is secret.
func (Transfer) MarshalJSON() ([]byte, error) { return redact.JSON("oblivious.Transfer") }

// Format writes that the value is secret.
func (Joint) Format(s fmt.State, _ rune) { redact.Format(s, "oblivious.Joint") }

// MarshalJSON says that the value is secret.
func (Joint) MarshalJSON() ([]byte, error) { return redact.JSON("oblivious.Joint") }

// Format writes that the value is secret.
func (Published) Format(s fmt.State, _ rune) { redact.Format(s, "oblivious.Published") }

// MarshalJSON says that the value is secret.
func (Published) MarshalJSON() ([]byte, error) { return redact.JSON("oblivious.Published") }

// Format writes that the value is secret.
func (PublishedView) Format(s fmt.State, _ rune) { redact.Format(s, "oblivious.PublishedView") }

// MarshalJSON says that the value is secret.
func (PublishedView) MarshalJSON() ([]byte, error) { return redact.JSON("oblivious.PublishedView") }

// Format writes that the value is secret.
func (PublishedServer) Format(s fmt.State, _ rune) { redact.Format(s, "oblivious.PublishedServer") }

// MarshalJSON says that the value is secret.
func (PublishedServer) MarshalJSON() ([]byte, error) {
	return redact.JSON("oblivious.PublishedServer")
}
