package oneshot

import "fmt"

// Whatever verb prints them, parties, members and servers show who they are and no
// secret.

// Format implements [fmt.Formatter].
func (p *Party) Format(f fmt.State, _ rune) {
	if p == nil {
		fmt.Fprint(f, "no party")
		return
	}
	fmt.Fprintf(f, "party %d, round %d", p.self, p.last)
}

// Format implements [fmt.Formatter].
func (m *Member) Format(f fmt.State, _ rune) {
	if m == nil {
		fmt.Fprint(f, "no member")
		return
	}
	fmt.Fprintf(f, "member %d, round %d", m.self, m.round)
}

// Format implements [fmt.Formatter].
func (s *Server) Format(f fmt.State, _ rune) {
	if s == nil {
		fmt.Fprint(f, "no server")
		return
	}
	fmt.Fprintf(f, "server, round %d", s.round)
}
