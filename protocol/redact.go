package protocol

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/redact"
)

// Nothing that holds a secret prints it, in any format of fmt, in JSON or in logs.

// Format writes that the value is secret.
func (Client) Format(s fmt.State, _ rune) { redact.Format(s, "protocol.Client") }

// MarshalJSON says that the value is secret.
func (Client) MarshalJSON() ([]byte, error) { return redact.JSON("protocol.Client") }

// Format writes that the value is secret.
func (Server) Format(s fmt.State, _ rune) { redact.Format(s, "protocol.Server") }

// MarshalJSON says that the value is secret.
func (Server) MarshalJSON() ([]byte, error) { return redact.JSON("protocol.Server") }

// Format writes that the value is secret.
func (ClientSeries) Format(s fmt.State, _ rune) { redact.Format(s, "protocol.ClientSeries") }

// MarshalJSON says that the value is secret.
func (ClientSeries) MarshalJSON() ([]byte, error) { return redact.JSON("protocol.ClientSeries") }

// Format writes that the value is secret.
func (ServerSeries) Format(s fmt.State, _ rune) { redact.Format(s, "protocol.ServerSeries") }

// MarshalJSON says that the value is secret.
func (ServerSeries) MarshalJSON() ([]byte, error) { return redact.JSON("protocol.ServerSeries") }
