package hushsum

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// largeLength is the number of weights of BenchmarkLarge.
var largeLength = flag.Int("large", 25_000_000, "weights of the model in BenchmarkLarge")

// largeParties is how many parties there are in it.
const largeParties = 20

// largeEnv tells a process that it is a role of BenchmarkLarge, and in which folder.
const largeEnv = "HUSHSUM_LARGE_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(largeEnv); role != "" {
		play := playLarge
		if one, width, job := strings.Cut(role, " "); job {
			play = func(_, dir string) error { return playLargeJob(one, width, dir) }
		}
		if err := play(role, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	suite.AtOnce(16)                      // jobs over TCP, which wait for each other's steps
	farewellTime = 100 * time.Millisecond // of examples and jobs over TCP
	os.Exit(m.Run())
}

// large holds what all processes of the benchmark share.
type large struct {
	dir     string
	key     keyexchange.SealKey
	settled *Settled
	signers []crypto.Signer
}

// largeDeclared is a job of float32 weights in a ring of 32 bits, with noise.
func largeDeclared(length int) *job.Job {
	return &job.Job{
		Name:    "large",
		Rounds:  100,
		Model:   job.Model{Length: length},
		Parties: job.Parties{Count: largeParties, DropOut: 0.2},
		Privacy: job.Privacy{Noise: "discrete-gaussian", Clip: 1, Epsilon: 8, Bits: 32},
	}
}

func newLarge(dir string, parties int) (*large, error) {
	text, err := os.ReadFile(filepath.Join(dir, "job.json"))
	if err != nil {
		return nil, err
	}
	declared, err := job.Parse("job.json", text)
	if err != nil {
		return nil, err
	}
	l := &large{dir: dir, key: keyexchange.SealKey{5}}
	var members []keyexchange.Entry
	for i := range parties {
		seed := sha256.Sum256(fmt.Appendf(nil, "large %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		l.signers = append(l.signers, key)
		members = append(members, keyexchange.Entry{
			Name: fmt.Sprintf("party-%d", i), Key: key.Public().(ed25519.PublicKey),
		})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	l.settled, err = declared.Settle(job.Files{Roster: roster})
	return l, err
}

func (l *large) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(l.dir, name)) }

func (l *large) write(name string, b []byte) error {
	return os.WriteFile(filepath.Join(l.dir, name), b, 0o600)
}

func (l *large) client(party int) (*protocol.Client, error) {
	state, err := l.read(fmt.Sprintf("client-%d", party))
	if err != nil {
		return nil, err
	}
	return protocol.LoadClient(l.settled.Config(1), l.signers[party], nil, &l.key, state)
}

func (l *large) saveServer(s *protocol.Server) error {
	state, sum, err := s.SaveParts(&l.key)
	if err == nil && sum != nil {
		err = l.stream("sum", func(w io.Writer) error { _, err := sum.WriteTo(w); return err })
	}
	if err != nil {
		return err
	}
	return l.write("server", state)
}

func (l *large) stream(name string, write func(w io.Writer) error) error {
	file, err := os.Create(filepath.Join(l.dir, name))
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func (l *large) server() (*protocol.Server, error) {
	state, err := l.read("server")
	if err != nil {
		return nil, err
	}
	var sum io.Reader // nil while submissions come in
	if file, err := os.Open(filepath.Join(l.dir, "sum")); err == nil {
		defer file.Close()
		sum = file
	}
	return protocol.ReadServer(l.settled.Config(1), &l.key, state, sum)
}

// largeBroadcast names a broadcast of the benchmark, which is not sent.
var largeBroadcast = job.BroadcastDigest([]byte("large"))

// largeVector is a party's update. Only that of party 0 is not zero.
func largeVector(length int) []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([]float32, length)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	norm := 0.
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	for i := range v {
		v[i] *= float32(0.99 / math.Sqrt(norm))
	}
	return v
}

// playLarge is a process of the benchmark. It reports what it measured in the folder.
func playLarge(role, dir string) error {
	l, err := newLarge(dir, largeParties)
	if err != nil {
		return err
	}
	figures := make(map[string]float64)
	begin := time.Now()
	lap := func(name string) {
		figures[name] = time.Since(begin).Seconds()
		begin = time.Now()
	}
	length := l.settled.Length()
	switch role {
	case "submit":
		client, err := l.client(0)
		if err != nil {
			return err
		}
		vector := largeVector(length)
		begin = time.Now()
		message, err := client.SubmitVector(largeBroadcast, func(v *masking.Vector) error {
			err := job.EncodeTo(v, l.settled, largeBroadcast, Update[float32]{Vector: vector}, nil)
			lap("encode-s")
			return err
		})
		if err != nil {
			return err
		}
		lap("mask-s")
		state, err := client.Save(&l.key)
		if err != nil {
			return err
		}
		if err := l.write("client-0", state); err != nil {
			return err
		}
		out := bufio.NewWriter(os.Stdout)
		if _, err := message.WriteTo(out); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		figures["bytes/(d·b/8)"] = float64(message.Size()) / (float64(length) * 32 / 8)
		lap("write-s")
	case "receive":
		server, err := l.server()
		if err != nil {
			return err
		}
		in := bufio.NewReader(os.Stdin)
		for range largeParties {
			var head struct {
				Party uint32
				Size  int64
			}
			if err := binary.Read(in, binary.BigEndian, &head); err != nil {
				return err
			}
			if err := server.ReadMessage(int(head.Party), io.LimitReader(in, head.Size)); err != nil {
				return err
			}
		}
		if _, err := server.Survivors(); err != nil {
			return err
		}
		if err := l.saveServer(server); err != nil {
			return err
		}
	case "load":
		server, err := l.server()
		if err != nil {
			return err
		}
		lap("load-s")
		if server.Step() != protocol.StepReveal {
			return fmt.Errorf("it came back as %v", server.Step())
		}
	case "decode":
		server, err := l.server()
		if err != nil {
			return err
		}
		begin = time.Now()
		sum, err := server.SumVector()
		if err != nil {
			return err
		}
		lap("unmask-s")
		mean := make([]float32, length)
		if _, err := job.DecodeTo(mean, l.settled, largeBroadcast, sum, largeParties); err != nil {
			return err
		}
		lap("decode-s")
		if err := checkLarge(l, mean); err != nil {
			return err
		}
		return l.report(role, figures, peak)
	}
	return l.report(role, figures, peak)
}

// checkLarge compares the mean of the first weights with what it is to be: one party had
// noise, and the others zeros without.
func checkLarge(l *large, mean []float32) error {
	var err error
	if peak, err = peakMegabytes(); err != nil { // before the comparison
		return err
	}
	const first = 1 << 16
	squares := 0.
	rng := rand.New(rand.NewPCG(1, 2))
	for _, x := range mean[:first] {
		// The norm of this many Gaussian numbers is √d, but for a thousandth.
		want := 0.99 / math.Sqrt(float64(len(mean))) * rng.NormFloat64() / largeParties
		squares += (float64(x) - want) * (float64(x) - want)
	}
	found, want := math.Sqrt(squares/first), l.settled.StdDev(1)/largeParties
	// The rounding of each of 20 vectors adds a little to the noise of one.
	if found < 0.95*want || found > 1.5*want {
		return fmt.Errorf("the mean is off by %v, want %v", found, want)
	}
	return nil
}

var peak float64

func (l *large) report(role string, figures map[string]float64, peak float64) error {
	if peak == 0 {
		var err error
		if peak, err = peakMegabytes(); err != nil {
			return err
		}
	}
	figures["peak-MB"] = peak
	b, err := json.Marshal(figures)
	if err != nil {
		return err
	}
	return l.write(role+".json", b)
}

// figures are those that a role has reported.
func (l *large) figures(role string) (map[string]float64, error) {
	figures := make(map[string]float64)
	text, err := l.read(role + ".json")
	if err == nil {
		err = json.Unmarshal(text, &figures)
	}
	return figures, err
}

// peakMegabytes is the most memory that the process has had (10^6 bytes).
func peakMegabytes() (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		var kilobytes float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); err == nil {
			return kilobytes * 1024 / 1e6, nil
		}
	}
	return 0, fmt.Errorf("no VmHWM")
}

// BenchmarkLarge is a round of 20 parties with a model of 25,000,000 float32 weights, in
// a ring of 32 bits and with noise, every role in a process of its own on one core:
//
//	go test . -run NONE -bench Large
//
// submit encodes, draws the noise, masks and writes the message; receive takes those of
// all parties, in pieces; load brings a server back that was saved; decode takes the masks
// off and makes the mean. peak-MB is the most memory that the process has had, the
// vector or mean itself included. -args -large 100000000 is of as many weights.
func BenchmarkLarge(b *testing.B) {
	if _, err := peakMegabytes(); err != nil {
		b.Skip(err)
	}
	dir := b.TempDir()
	text, err := json.Marshal(largeDeclared(*largeLength))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.json"), text, 0o600); err != nil {
		b.Fatal(err)
	}
	l, err := newLarge(dir, largeParties)
	if err != nil {
		b.Fatal(err)
	}
	session, err := protocol.NewLocal(l.settled.Config(1), l.signers, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := session.Step(func() ([]protocol.Envelope, error) {
		return session.Server.BeginDigest(largeBroadcast)
	}); err != nil {
		b.Fatal(err)
	}
	if err := l.saveServer(session.Server); err != nil {
		b.Fatal(err)
	}
	state, err := session.Clients[0].Save(&l.key)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.write("client-0", state); err != nil {
		b.Fatal(err)
	}
	// Each role once, in order: they are measured in their own processes.
	message := filepath.Join(dir, "message")
	play := func(role string, in io.Reader, out io.Writer) {
		b.Run(role, func(b *testing.B) {
			played := false
			for b.Loop() { // once, however long it takes
				if played {
					continue
				}
				played = true
				if err := spawnLarge(dir, role, in, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(0, "ns/op") // the processes have their own times
			figures, err := l.figures(role)
			if err != nil {
				b.Fatal(err)
			}
			for name, x := range figures {
				b.ReportMetric(x, name)
			}
		})
	}
	file, err := os.Create(message)
	if err != nil {
		b.Fatal(err)
	}
	play("submit", nil, file)
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	if session.Clients[0], err = l.client(0); err != nil {
		b.Fatal(err)
	}
	in, out := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := sendLarge(session.Clients, message, out)
		sent <- err
		_ = out.CloseWithError(err)
	}()
	play("receive", in, nil)
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
	if session.Server, err = l.server(); err != nil {
		b.Fatal(err)
	}
	survivors := func() (out []protocol.Envelope, err error) { // those that the process made
		for i := range session.Clients {
			for _, m := range session.Server.Pending(i) {
				out = append(out, protocol.Envelope{To: i, Message: m})
			}
		}
		return out, nil
	}
	for _, next := range []func() ([]protocol.Envelope, error){survivors, session.Server.Certificate} {
		if err := session.Step(next); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.saveServer(session.Server); err != nil {
		b.Fatal(err)
	}
	session.Server = nil
	play("load", nil, nil)
	play("decode", nil, nil)
}

// spawnLarge runs a role on one core.
func spawnLarge(dir, role string, in io.Reader, out io.Writer) error {
	process := exec.Command(os.Args[0], dir)
	process.Env = append(os.Environ(), largeEnv+"="+role, "GOMAXPROCS=1")
	process.Stdin, process.Stdout = in, out
	var said bytes.Buffer
	process.Stderr = &said
	if err := process.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", role, err, said.Bytes())
	}
	return nil
}

// sendLarge sends the submission in the file for party 0 and those of zeros for others.
func sendLarge(clients []*protocol.Client, first string, w io.Writer) error {
	for i, c := range clients {
		head := func(size int64) error {
			return binary.Write(w, binary.BigEndian, struct {
				Party uint32
				Size  int64
			}{uint32(i), size})
		}
		if i == 0 {
			file, err := os.Open(first)
			if err != nil {
				return err
			}
			info, err := file.Stat()
			if err == nil {
				err = head(info.Size())
			}
			if err == nil {
				_, err = io.Copy(w, file)
			}
			_ = file.Close()
			if err != nil {
				return err
			}
			continue
		}
		s, err := c.SubmitVector(largeBroadcast, func(v *masking.Vector) error {
			v.Erase()
			return nil
		})
		if err != nil {
			return err
		}
		if err := head(s.Size()); err != nil {
			return err
		}
		if _, err := s.WriteTo(w); err != nil {
			return err
		}
		c.Release()
	}
	return nil
}
