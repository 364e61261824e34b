package oneshot

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
)

// TestMany is a round of very many parties with 1,000 values each, open and covered, and
// what the server holds meanwhile: open, no more at the end than near the beginning, but
// for the two bits that each party has from the first; covered, 68 bytes for each in the
// sum, and 32 for each of them and each member's part. With -longest they are 100,000.
func TestMany(t *testing.T) {
	n := 150
	if suite.Longest() {
		n = 100_000
	} else if testing.Short() {
		t.Skip("seconds of sealing")
	}
	for _, covered := range []bool{false, true} {
		t.Run(fmt.Sprintf("covered=%v", covered), func(t *testing.T) { many(t, n, covered) })
	}
}

func many(t *testing.T, n int, covered bool) {
	const members = 7
	start := time.Now()
	w := newWorld(n, members, Terms{Length: 1000, Bits: 12, MinSurvivors: n / 2, Colluders: n / 10,
		Faults: 1, Noise: gaussian(10, n/2-n/10), KEM: KEMX25519, Covered: covered})
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	s := w.server.config
	// Covered submissions are kept where memory is not.
	file, err := os.Create(filepath.Join(t.TempDir(), "submissions"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size := 0
	var early, late int
	for i := range n {
		message := must(w.submit(i))
		if err := w.server.Receive(message); err != nil {
			t.Fatal(err)
		}
		if covered {
			size = must(file.Write(message))
		}
		if w.server.Waiting() == DefaultBatch || i == n-1 {
			if i < DefaultBatch {
				early = w.serverHeap(t)
			}
			if err := w.deliver(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	late = w.serverHeap(t)
	// Batches are gone by then: at the first measurement one of them waited.
	allowed := early
	if covered {
		allowed += n * 68 * 5 / 4 // a slice may have a quarter to spare
	}
	if late > allowed {
		t.Errorf("the server holds %d bytes after all submissions, %d with its first batch", late,
			early)
	}
	for step, next := range []func() ([]byte, error){w.server.Close, w.server.Certificate} {
		if err := w.ask(step, must(next()), nil); err != nil {
			t.Fatal(err)
		}
	}
	parts := w.serverHeap(t)
	if covered {
		allowed += n * 32 * members
	}
	allowed += members * s.Polynomials * scalarSize * 2
	if parts > allowed {
		t.Errorf("the server holds %d bytes with the members' parts, want %d at most", parts, allowed)
	}
	if covered {
		message := make([]byte, size)
		must(file.Seek(0, io.SeekStart))
		for range n {
			must(io.ReadFull(file, message))
			if err := w.server.Uncover(message); err != nil {
				t.Fatal(err)
			}
		}
	}
	sum := must(w.server.Sum())
	want := make([]int64, s.Length)
	for i := range n {
		for k, v := range w.values(i) {
			want[k] += v
		}
	}
	w.near(t, sum, want)
	t.Logf("%d parties: the server holds %.2f MB with its first batch, %.2f after all of them, "+
		"%.2f with the parts; %.0f s", n, float64(early)/1e6, float64(late)/1e6, float64(parts)/1e6,
		time.Since(start).Seconds())
}

// serverHeap returns the bytes that the server alone keeps from being collected. The
// server is saved to a file and loaded again for it.
func (w *world) serverHeap(t *testing.T) int {
	t.Helper()
	heap := func() int {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	with := heap()
	path, key := filepath.Join(t.TempDir(), "server"), new(keyexchange.SealKey)
	if err := os.WriteFile(path, must(w.server.Save(key)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.server = nil
	without := heap()
	w.server = must(LoadServer(w.config, 0, key, must(os.ReadFile(path))))
	return with - without
}
