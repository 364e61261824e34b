package party

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/hushsum/hushsum/service/exchange"
)

// keeper is a server that takes messages in pieces. refuse, if not nil, refuses a request, or
// takes the first bytes of its body only.
type keeper struct {
	*running
	kept   []byte
	whole  []byte
	heard  []string // offsets and lengths, in order
	refuse func(request, at int) (kind string, takes int)
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{}
	k.running = newRunning(t, k.serve)
	return k
}

func (k *keeper) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	body, _ := io.ReadAll(r.Body)
	k.heard = append(k.heard, query.Get("offset")+"+"+strconv.Itoa(len(body)))
	problem := func(kind string) {
		w.WriteHeader(exchange.Refusals()[kind].Status)
		_ = json.NewEncoder(w).Encode(exchange.Problem{Type: exchange.ProblemPrefix + kind})
	}
	if query.Get("upload") == "" {
		k.whole = body
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if k.refuse != nil {
		if kind, takes := k.refuse(len(k.heard), len(k.kept)); kind != "" {
			k.kept = append(k.kept, body[:min(takes, len(body))]...)
			if kind == "cut" {
				panic(http.ErrAbortHandler)
			}
			if kind == "proxy" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			problem(kind)
			return
		}
	}
	if len(body) > 0 && query.Get("offset") != strconv.Itoa(len(k.kept)) {
		problem("offset")
		return
	}
	k.kept = append(k.kept, body...)
	if digest := sha256.Sum256(k.kept); fmt.Sprintf("%x", digest) == query.Get("upload") {
		k.whole, k.kept = k.kept, nil
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set(exchange.HeaderOffset, strconv.Itoa(len(k.kept)))
}

func (k *keeper) send(message []byte) error {
	return k.Server.Send(context.Background(), "f", message)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// Requests for a message, and their lengths, follow from its length alone, whatever it says.
func TestPiecesFollowFromLength(t *testing.T) {
	const size = exchange.PieceSize
	for n, want := range map[int][]string{
		0:        {"+0"},
		1:        {"+1"},
		size:     {fmt.Sprint("+", size)},
		size + 1: {"0+0", fmt.Sprint("0+", size), fmt.Sprint(size, "+1")},
		2 * size: {"0+0", fmt.Sprint("0+", size), fmt.Sprint(size, "+", size)},
		2*size + 123: {"0+0", fmt.Sprint("0+", size), fmt.Sprint(size, "+", size),
			fmt.Sprint(2*size, "+123")},
	} {
		for _, message := range [][]byte{make([]byte, n), randomBytes(n), randomBytes(n)} {
			k := newKeeper(t)
			if err := k.send(message); err != nil || !bytes.Equal(k.whole, message) {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if !slices.Equal(k.heard, want) {
				t.Errorf("%d bytes: %q, want %q", n, k.heard, want)
			}
		}
	}
}

// A message gets there as long as each attempt brings some of it further, and otherwise its
// sender hears why not; what it then sends again goes on where it ended.
func TestBrokenUploads(t *testing.T) {
	message := randomBytes(3*exchange.PieceSize + 7)
	for name, refuse := range map[string]func(request, at int) (kind string, takes int){
		"each second request is cut": func(request, _ int) (string, int) {
			return []string{"cut", ""}[request%2], 300_000
		},
		"pieces that are cut": func(_, at int) (string, int) {
			return []string{"", "cut"}[min(1, at%exchange.PieceSize)], 0
		},
		"the door is busy": func(request, _ int) (string, int) {
			return []string{"", "", "busy"}[request%3], 0
		},
		"too many requests": func(request, _ int) (string, int) {
			return []string{"", "", "rate"}[request%3], 0
		},
		"slow": func(request, at int) (string, int) {
			return []string{"slow", ""}[request%2], 90_000
		},
		"a proxy loses answers": func(request, _ int) (string, int) {
			return []string{"proxy", ""}[request%2], 600_000
		},
	} {
		k := newKeeper(t)
		k.refuse = refuse
		if err := k.send(message); err != nil || !bytes.Equal(k.whole, message) {
			t.Errorf("%s: %v, after %q", name, err, k.heard)
		}
	}
	for kind, asks := range map[string]int{
		"proxy": 3, "leader": 3, "slow": 3, "due": 2, "message": 2, "digest": 2, "full": 2,
	} {
		k := newKeeper(t)
		broken := true
		k.refuse = func(request, at int) (string, int) {
			if broken && request > 3 && len(k.heard)%2 == 0 || broken && request == 3 && asks == 2 {
				return kind, 0
			}
			return "", 0
		}
		err := k.send(message)
		var refusal *RefusalError
		if !errors.As(err, &refusal) || refusal.Kind != kind && kind != "proxy" {
			t.Errorf("%s: %v, after %q", kind, err, k.heard)
		}
		broken = false
		began := len(k.heard)
		if err := k.send(message); err != nil || !bytes.Equal(k.whole, message) {
			t.Errorf("%s, and then not: %v", kind, err)
		}
		again := fmt.Sprint(exchange.PieceSize, "+", exchange.PieceSize)
		if kind == "proxy" && slices.Contains(k.heard[began:], again) {
			t.Errorf("it begins again: %q", k.heard[began:])
		}
	}
}

// A server that says of more or of other bytes that they came than were sent has no party send
// beyond its message, or for ever.
func TestWrongOffsets(t *testing.T) {
	message := randomBytes(2 * exchange.PieceSize)
	for _, offset := range []string{"", "-1", "x", strconv.Itoa(len(message)), "99999999999999999999",
		"7"} {
		requests := 0
		r := newRunning(t, func(w http.ResponseWriter, r *http.Request) {
			requests++
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set(exchange.HeaderOffset, offset)
		})
		if err := r.Server.Send(context.Background(), "f", message); !errors.Is(err, errOther) ||
			requests > 2 {
			t.Errorf("%q: %v after %d requests", offset, err, requests)
		}
	}
}
