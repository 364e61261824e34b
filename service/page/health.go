package page

import (
	"net/http"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// Health is the state of a node and of its record.
type Health struct {
	Name, Door string
	// Fingerprint names the certificate that the door shows now, empty for HTTP, and Expires is the
	// end of that certificate's validity.
	Fingerprint string
	Expires     time.Time
	// NotReady says why the node is not ready, empty if it is. NotDeciding says why the record does
	// not take the node's decisions, empty if it does.
	NotReady, NotDeciding string
	DiskFree, DiskSize    uint64 // 0: not known
	OpenFiles, MostFiles  int
	Leads, Federations    int
	Where                 string         // the record is, in words
	Group                 *record.Group  // nil: there is none, or it is not this process's
	Record                *record.Health // nil: it cannot be read, and Unread says why
	Unread                string
}

// stands is the word for a stream's state.
func stands(s record.Stream) string {
	switch {
	case !s.Decides():
		return "failing"
	case !s.Well():
		return "behind"
	}
	return "well"
}

const refreshHealth = 2 * time.Second // it asks the leaders of all streams

func (s *site) node(w http.ResponseWriter, r *http.Request) {
	s.render(w, "node.html", s.Federations.Health(r.Context()))
}

func (s *site) liveNode(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, "health.html", refreshHealth, func() (any, error) {
		return s.Federations.Health(r.Context()), nil
	})
}
