package federation_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

var rewrite = flag.Bool("rewrite", false, "write what jobs settle to anew")

// What a federation rests on stays as it is: digests, sessions, noise, the first model, what
// parties submit and what follows from a sum.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "jobs", "*.toml"))
	if err != nil || len(files) < 14 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	var out bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var model []byte
		if bytes.Contains(text, []byte("\nfile = ")) { // any will do
			spec := tensor.Spec{DType: tensor.Float64,
				Tensors: []tensor.Tensor{{Name: "w", Shape: []int{2}}}}
			if model, err = spec.AppendNPZ(nil, []float64{1, 2}); err != nil {
				t.Fatal(err)
			}
		}
		f, err := federation.New(federation.Files{Text: text, Roster: rosterOf(t, 10), Model: model})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		j, err := job.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := j.MarshalText()
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%s: it is written as\n%s%v", file, again, err)
		}
		tell(t, &out, filepath.Base(file), f)
	}
	golden := filepath.Join("testdata", "golden.txt")
	if *rewrite {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%v: it is\n%s", err, &out)
	}
}

func tell(t *testing.T, out *bytes.Buffer, name string, f *federation.Federation) {
	t.Helper()
	c := f.Settled.Config(3)
	fmt.Fprintf(out, "%s %s\n  %s\n", name, f.JobDigest, c.Label)
	fmt.Fprintf(out, "  number %d members %d colluders %d classical %v layout %v recovery %+v\n",
		c.Number, c.MinMembers, c.Colluders, c.Classical, c.Layout, c.Recovery)
	fmt.Fprintf(out, "  tensors %v kept %v first %s\n", f.Spec, f.Kept, digestOf(f.Initial))
	ledger, err := f.Settled.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "  ledger %v draw %v", ledger != nil,
		f.Settled.Draw(2, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 4))
	if ledger != nil {
		r := f.Settled.Round()
		fmt.Fprintf(out, " round %v %d of %d %d %.5g samples %v", r.Family, r.Shares,
			f.Settled.MinSurvivors(),
			f.Settled.Colluders(), []float64{r.Update.ShareSigma, r.Update.ShareVariance, r.Update.SumScale,
				r.Update.Sensitivity.L1, r.Update.Sensitivity.L2}, r.Samples)
		if r.Signs != nil {
			fmt.Fprintf(out, " signs %.5g", r.Signs.Sensitivity.L2)
		}
	}
	fmt.Fprintln(out)
	if f.Learner(nil) != nil { // parties submit what a training makes
		tellTrained(t, out, f)
		return
	}
	vector := make([]float64, f.Settled.Length())
	for i := range vector {
		vector[i] = math.Sin(float64(i)) / 10
	}
	values, err := f.Settled.Encode(job.BroadcastDigest([]byte("begun")),
		job.Update[float64]{Vector: vector, Loss: 2, Accuracy: 0.5}, rand.NewChaCha8([32]byte{7}))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "  submission %s", digestOf(values))
	next, _, err := f.Next(f.Optimizer(), 1, make([]float64, f.Spec.Len()), []byte("begun"), values,
		[]int{4})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, " next %s\n", digestOf(next))
}

// tellTrained tells what follows from a sum, whatever is in it, where a training is declared.
func tellTrained(t *testing.T, out *bytes.Buffer, f *federation.Federation) {
	t.Helper()
	var sum [][]uint64
	for lane, segment := range f.Settled.Config(1).Layout {
		values := make([]uint64, segment.Length)
		for k := range values {
			switch {
			case lane == 0:
				values[k] = uint64(k%3) << 14
			case segment.Length == 1: // rows
				values[k] = 70
			}
		}
		sum = append(sum, values)
	}
	next, _, err := f.Next(f.Optimizer(), 1, f.Initial, []byte("begun"), sum,
		[]int{1, 4, 5, 6, 7, 8, 9})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "  next %s\n", digestOf(next))
}

func digestOf(values any) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%.6v", values)))[:16]
}
