package door

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/signature"
)

// A long message comes in pieces: proxies refuse long bodies, and connections break. Each piece is
// a request of its own, whose signed query has the digest and the length of the whole message, so
// that nothing is accepted of a message that is too long, and pieces of two messages do not mix.
// Received bytes of a piece whose connection broke are kept, and the next begins there. An upload
// waits in the room reserved for its whole length, on this node alone: another leader knows nothing
// of it.

// away is the factor by which an upload may pause longer between two pieces than a body may: its
// party may have to find another node, or its network.
const away = 12

// piece says where the body of a request belongs.
type piece struct {
	digest [32]byte // of the message
	length int64    // of the message
	offset int64    // of the body in it
	whole  bool     // the body is the message
}

// named returns the name of the header or parameter that has the message's digest.
func (p *piece) named() string {
	if p.whole {
		return "Content-Digest"
	}
	return "upload"
}

// pieceOf reads the query of a message.
func pieceOf(r *http.Request, s *signature.Signed) (p piece, err error) {
	if r.URL.RawQuery == "" {
		return piece{digest: s.Digest, length: r.ContentLength, whole: true}, nil
	}
	query := r.URL.Query()
	for _, name := range []string{"upload", "length", "offset"} {
		if len(query) != 3 || len(query[name]) != 1 {
			return p, errors.New("a piece takes upload, length and offset, each once, and nothing else")
		}
	}
	digest, err := hex.DecodeString(query.Get("upload"))
	if err != nil || len(digest) != len(p.digest) {
		return p, errors.New("upload is the message's SHA-256 in 64 hexadecimal digits")
	}
	p.digest = [32]byte(digest)
	length, err1 := strconv.ParseUint(query.Get("length"), 10, 62)
	offset, err2 := strconv.ParseUint(query.Get("offset"), 10, 62)
	p.length, p.offset = int64(length), int64(offset)
	switch {
	case err1 != nil || err2 != nil:
		return p, errors.New("length and offset are numbers of bytes")
	case p.length-p.offset < max(r.ContentLength, 1):
		return p, fmt.Errorf("there are no %d bytes at %d of %d", max(r.ContentLength, 1), p.offset,
			p.length)
	}
	return p, nil
}

// upload is a message of which a part has arrived.
type upload struct {
	*body
	of           [32]byte // digest of the message
	began, moved time.Time
	expiry       *time.Timer // while it waits for its next piece
}

// discard releases the room of an upload, if there is one.
func (u *upload) discard() {
	if u != nil {
		u.Close()
	}
}

// take takes over a caller's upload, which belongs to the taker until it is kept again. It returns
// nil if there is none.
func (d *Door) take(key string) *upload {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	u := d.uploads[key]
	if u != nil {
		u.expiry.Stop()
		delete(d.uploads, key)
	}
	return u
}

// keep keeps an upload for the next piece, under a deadline that only bytes extend: as for one
// body, with longer pauses.
func (d *Door) keep(key string, u *upload) {
	if u == nil {
		return
	}
	patience := d.Patience
	if patience == 0 {
		patience = DefaultPatience
	}
	limit := u.began.Add(away*patience + bytesTime(u.came))
	if pause := u.moved.Add(away * patience); pause.Before(limit) {
		limit = pause
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.uploads[key] = u
	u.expiry = time.AfterFunc(time.Until(limit), func() {
		d.mutex.Lock()
		current := d.uploads[key] == u
		if current {
			delete(d.uploads, key)
		}
		d.mutex.Unlock()
		if current {
			u.Close()
		}
	})
}

// receive reads a message, or the next piece of one. It returns the message once it is whole, for
// the caller to close; until then it answers the request itself.
func (d *Door) receive(
	w http.ResponseWriter, r *http.Request, c *caller, p piece,
) (b *upload, ok bool) {
	u, at := d.take(c.key()), int64(0)
	same := !p.whole && u != nil && u.of == p.digest && u.size == p.length
	if same {
		at = u.came
	}
	switch {
	case !p.whole && r.ContentLength == 0: // asks how much has come
		d.keep(c.key(), u)
		answerOffset(w, at)
		return nil, false
	case p.offset != at:
		d.keep(c.key(), u)
		w.Header().Set(exchange.HeaderOffset, strconv.FormatInt(at, 10))
		d.refuse(w, "offset", "%d bytes of it have arrived; continue there", at)
		return nil, false
	case !same:
		u.discard()
		u = &upload{of: p.digest, began: time.Now()}
		var err error
		if u.body, err = d.newBody(p.length); err != nil {
			d.refuseRoom(w, err)
			return nil, false
		}
	}
	digest := sha256.New()
	err := u.readFrom(io.TeeReader(r.Body, digest), r.ContentLength)
	came := u.came - at
	if came > 0 {
		u.moved = time.Now()
	}
	failed := new(os.PathError)
	switch {
	case errors.As(err, &failed):
		u.Close()
		d.refuseRoom(w, err)
	case err != nil:
		if !p.whole && u.came > 0 {
			d.keep(c.key(), u)
		} else {
			u.Close()
		}
		d.refuse(w, "slow", "%d of %d bytes arrived, and then nothing, or too little", came,
			r.ContentLength)
	case !p.whole && [32]byte(digest.Sum(nil)) != c.signed.Digest:
		u.Close()
		d.refuse(w, "digest", "Content-Digest does not match; begin again")
	case u.came < u.size:
		d.keep(c.key(), u)
		answerOffset(w, u.came)
	default:
		return u, true
	}
	return nil, false
}

// refuseRoom refuses a body for which there is no room.
func (d *Door) refuseRoom(w http.ResponseWriter, err error) {
	if !errors.Is(err, errFull) {
		d.Log.Error("there is no room for a body on the disk", "error", err.Error())
	}
	d.refuse(w, "full", "ask again")
}

// answerOffset reports how much of an upload has arrived.
func answerOffset(w http.ResponseWriter, at int64) {
	w.Header().Set(exchange.HeaderOffset, strconv.FormatInt(at, 10))
	answer(w, struct {
		Status string `json:"status"`
		Offset int64  `json:"offset"`
	}{"kept", at})
}
