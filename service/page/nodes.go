package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// This file shows an operator's program the nodes of a server, and removes one.

// Errors of removals.
var (
	// ErrQuorum: without the node the other nodes could not decide, or could not lose another node.
	ErrQuorum = errors.New("page: the quorum would suffer")
	// ErrNode: the node does not exist, or it cannot be removed here.
	ErrNode = errors.New("page: the node cannot be removed")
	// ErrStale: nodes were removed since the operator looked.
	ErrStale = errors.New("page: nodes were removed since the operator looked; look again")
)

// Node describes a node as another node sees it.
type Node struct {
	Name    string     `json:"name"`
	Member  bool       `json:"member"` // of the embedded cluster that decides
	Here    bool       `json:"here"`
	Door    string     `json:"door,omitempty"`
	Version string     `json:"version,omitempty"`
	Seals   string     `json:"seals,omitempty"` // name of the key that it seals under
	Leads   int        `json:"leads"`           // federations; 0 while it is away
	Seen    *time.Time `json:"seen,omitempty"`  // when it was heard last
}

// Nodes holds the nodes of a server.
type Nodes struct {
	Nodes []Node `json:"nodes"`
	// Members is how many nodes decide, Quorum how many of them must agree, which is more than half,
	// and Missing how many more may be away. All three are 0 where the record is on an operator's
	// NATS, whose own servers decide.
	Members int `json:"members"`
	Quorum  int `json:"quorum"`
	Missing int `json:"missing"`
	// Copying counts the streams of the record that lack a copy, or have one that is out of date.
	Copying  int    `json:"copying"`
	Revision uint64 `json:"revision"` // of removals, for If-Match
}

// Say states in words which nodes decide.
func (n *Nodes) Say() string {
	if n.Members == 0 {
		return "the record is on another NATS, whose own servers decide"
	}
	here := n.Missing + n.Quorum
	text := fmt.Sprintf("%d of %d nodes are up, %d decide", here, n.Members, n.Quorum)
	switch {
	case n.Missing < 0:
		text += ": nothing is decided"
	case n.Missing == 0:
		text += ": none of them may fail"
	case n.Missing == 1:
		text += ": 1 may fail"
	default:
		text += fmt.Sprintf(": %d may fail", n.Missing)
	}
	switch {
	case n.Copying > 0 && here < n.Members:
		text += fmt.Sprintf("; %d streams of the record lack a whole copy", n.Copying)
	case n.Copying > 0:
		text += fmt.Sprintf("; %d streams of the record are being copied", n.Copying)
	}
	return text
}

// NodeOrder orders the removal of a node.
type NodeOrder struct {
	Name  string
	Force bool // whatever it does to the quorum
	Who   string
	Seen  *uint64 // Nodes.Revision; nil: any
}

// Cluster holds what a page shows of a server's nodes.
type Cluster interface {
	Nodes(ctx context.Context) (*Nodes, error)
	// RemoveNode fails with [ErrQuorum], saying what would be lost, [ErrNode] and [ErrStale].
	RemoveNode(ctx context.Context, o NodeOrder) (*Nodes, error)
}

func (s *site) nodesJSON(w http.ResponseWriter, r *http.Request) {
	nodes, err := s.Federations.Nodes(r.Context())
	s.answerNodes(w, r, nodes, err)
}

func (s *site) answerNodes(w http.ResponseWriter, r *http.Request, nodes *Nodes, err error) {
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", strconv.FormatUint(nodes.Revision, 10)))
	answer(w, nodes)
}

func (s *site) removeNode(w http.ResponseWriter, r *http.Request) {
	o := NodeOrder{Name: r.PathValue("node"), Who: who(r).Name,
		Force: r.URL.Query().Get("force") == "true"}
	seen, ok := matched(w, r)
	if !ok {
		return
	}
	if seen != "" {
		n, err := strconv.ParseUint(seen, 10, 64)
		if err != nil {
			fail(w, r, ErrStale)
			return
		}
		o.Seen = &n
	}
	nodes, err := s.Federations.RemoveNode(r.Context(), o)
	if err == nil {
		s.Log.Warn("a node was removed", "node", o.Name, "by", o.Who, "forced", o.Force)
	}
	s.answerNodes(w, r, nodes, err)
}

// matched reads an order's If-Match: an ETag, empty for a star. If it cannot be used, matched
// answers.
func matched(w http.ResponseWriter, r *http.Request) (seen string, ok bool) {
	switch match := r.Header.Get("If-Match"); match {
	case "":
		problem(w, r, "match", "send If-Match: the ETag of the status, or *")
		return "", false
	case "*":
		if isSigned(r) { // a copy of it could be sent again
			problem(w, r, "match", "a signed order takes the ETag of the status, not a star")
			return "", false
		}
		return "", true
	default:
		seen = strings.Trim(match, `"`)
		if seen == "" { // which would be any
			problem(w, r, "stale", "the ETag is not one of this resource")
		}
		return seen, seen != ""
	}
}
