package oneshot

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

var (
	role    = flag.String("proof.role", "", "whose memory a process measures, for TestProofMemory")
	folder  = flag.String("proof.folder", "", "where its messages are")
	length  = flag.Int("proof.length", 100_000, "values of TestProofMemory and TestProofRound")
	parties = flag.Int("proof.parties", 100, "parties of TestProofRound")
)

// resident returns how many bytes a field of the process's status says: VmRSS, or VmHWM for the
// most there ever were.
func resident(t *testing.T, field string) float64 {
	t.Helper()
	status := must(os.ReadFile("/proc/self/status"))
	found := regexp.MustCompile(field + `:\s*(\d+) kB`).FindSubmatch(status)
	return float64(must(strconv.Atoi(string(found[1])))) * 1024
}

// TestProofMemory measures the peak of the resident set of a party, of a server and of a member,
// each in a process of its own, without a bound and with one, of a batch of 64 parties: with
// -proof.length values.
//
//	go test ./oneshot -run TestProofMemory -longest -v -timeout 1h -proof.length 1000000
func TestProofMemory(t *testing.T) {
	if *role != "" {
		measureRole(t)
		return
	}
	suite.OnlyLongest(t)
	for _, norm := range []int64{0, 1 << 16} {
		at := t.TempDir()
		for _, who := range []string{"parties", "party", "server", "server together", "member"} {
			c := exec.Command(must(os.Executable()), "-test.run", "^TestProofMemory$", "-test.v",
				"-test.timeout", "1h", "-proof.role", fmt.Sprint(who, "/", norm), "-proof.folder", at,
				"-proof.length", fmt.Sprint(*length))
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", who, err, out)
			}
			if said := regexp.MustCompile(`peak .*`).Find(out); said != nil {
				t.Logf("%d values, norm %d, %s: %s", *length, norm, who, said)
			}
		}
	}
}

// measureRole does what one does in a round, and logs what memory it took.
func measureRole(t *testing.T) {
	var who string
	norm := int64(0)
	if found := regexp.MustCompile(`(.*)/(\d+)`).FindStringSubmatch(*role); found != nil {
		who, norm = found[1], int64(must(strconv.Atoi(found[2])))
	}
	const count = DefaultBatch
	w, values := proofWorld(t, *length, count, norm) // the same in each process
	name := func(i int) string { return filepath.Join(*folder, fmt.Sprint(i)) }
	envelope := filepath.Join(*folder, "envelope")
	submit := func(i int) []byte {
		p := must(NewParty(w.config, w.keys[i], nil))
		return must(p.Submit(w.opening, []byte("model"), values))
	}
	var act func()
	switch who {
	case "parties":
		for i := range count {
			if err := os.WriteFile(name(i), submit(i), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return
	case "party":
		act = func() { submit(0) }
	case "server", "server together":
		act = func() {
			for i := 0; i < count; i += 8 {
				var messages [][]byte
				for j := range 8 {
					messages = append(messages, must(os.ReadFile(name(i+j))))
				}
				if who != "server" {
					w.server.Check(messages)
				}
				for _, message := range messages {
					if err := w.server.Receive(message); err != nil {
						t.Fatal(err)
					}
				}
			}
			first := must(w.server.Batch())[0].Message
			if err := os.WriteFile(envelope, first, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	case "member":
		message := must(os.ReadFile(envelope))
		act = func() { must(w.members[0].Receive(message)) }
	}
	runtime.GC()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // VmHWM = VmRSS
		t.Skip(err)
	}
	before := resident(t, "VmRSS")
	act()
	peak := resident(t, "VmHWM")
	t.Logf("peak %.1f MB, %.1f above what it had", peak/1e6, (peak-before)/1e6)
}

// TestProofRound is a whole round in which all parties submit with proofs, and what each side takes
// of processors:
//
//	go test ./oneshot -run TestProofRound -longest -v -timeout 1h -cpu 1 -proof.parties 1000
func TestProofRound(t *testing.T) {
	suite.OnlyLongest(t)
	w, values := proofWorld(t, *length, *parties, 1<<16)
	var party, server, member time.Duration
	measured := func(d *time.Duration, work func() error) {
		start := suite.Processor()
		if err := work(); err != nil {
			t.Fatal(err)
		}
		*d += suite.Processor() - start
	}
	for i := 0; i < *parties; i += DefaultBatch {
		var messages [][]byte
		for j := i; j < min(i+DefaultBatch, *parties); j++ {
			p := must(NewParty(w.config, w.keys[j], nil))
			measured(&party, func() error {
				m, err := p.Submit(w.opening, []byte("model"), values)
				messages = append(messages, m)
				return err
			})
		}
		measured(&server, func() error { w.server.Check(messages); return nil })
		for _, message := range messages {
			measured(&server, func() error { return w.server.Receive(message) })
		}
		var envelopes []Envelope
		measured(&server, func() (err error) { envelopes, err = w.server.Batch(); return err })
		for _, e := range envelopes {
			var answer []byte
			measured(&member, func() (err error) {
				answer, err = w.members[e.To].Receive(e.Message)
				return err
			})
			measured(&server, func() error { return w.server.Receive(answer) })
		}
		var settled []byte
		measured(&server, func() (err error) { settled, err = w.server.Settle(); return err })
		for _, m := range w.members {
			must(m.Receive(settled))
		}
	}
	sum, err := w.finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]int64, len(values))
	for k, v := range values {
		want[k] = int64(*parties) * v
	}
	w.near(t, sum, want)
	n := float64(*parties)
	t.Logf("%d parties, %d values: a party takes %.0f ms, the server %.1f a party, a member %.2f",
		*parties, *length, 1e3*party.Seconds()/n, 1e3*server.Seconds()/n,
		1e3*member.Seconds()/n/float64(len(w.members)))
}
