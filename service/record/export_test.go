package record

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamOf is streamOf.
var StreamOf = streamOf

// CopiesOf is copiesOf.
var CopiesOf = copiesOf

// LeastStart sets how long JetStream may take to start, at least.
func LeastStart(d time.Duration) { leastStart = d }

// ReplyTime sets how long a node may take to reply at first.
func ReplyTime(d time.Duration) { replyTime = d }

// Folder returns where decisions are kept.
func (r *Records) Folder() string { return r.folder }

// Keys returns the keys.
func (r *Records) Keys() *Keys { return r.keys }

// Copied returns this node's copy of a definition.
func (r *Records) Copied(id string) []byte { return r.copiedDefinition(id) }

// Damage returns why nobody knows which state is the newest, nil if it is known. It is
// [ErrDamaged].
func (h *Hold) Damage() error { return h.damage }

// Healed returns what the claim has put back that JetStream had lost, nil if nothing. It is
// [ErrDamaged].
func (h *Hold) Healed() error { return h.healed }

// LoseDefinition removes a definition from JetStream, as damage does.
func (r *Records) LoseDefinition(t *testing.T, id string) {
	subject := jetstream.WithPurgeSubject("$KV." + bucketDefinitions + "." + id)
	if err := r.declared.Purge(t.Context(), subject); err != nil {
		t.Fatal(err)
	}
}

// MostReply is the maximum size of the lines in one reply.
const MostReply = mostReply
