package learning

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pictures has n images of 4 × 4 pixels that tell their own number: every pixel
// carries a part of it, so that a row is known again after shuffling. Writers
// hold a few rows each.
func pictures(n, classes int) *Dataset {
	d := &Dataset{Features: 16}
	for i := range n {
		image := make([]byte, 16)
		image[5], image[6] = byte(i), byte(i>>8)
		d.Pixels = append(d.Pixels, image...)
		d.Labels = append(d.Labels, 7*i/3%classes)
		d.Writers = append(d.Writers, 100+i%(1+n/3))
	}
	return d
}

// numberOf undoes pictures for grey images.
func numberOf(d *Dataset, i int) int {
	return int(d.Pixels[i*16+5]) + int(d.Pixels[i*16+6])<<8
}

// checkParts fails unless every row is in one part at most, with its own label
// and writer, and no part is empty. It returns the number of rows dealt.
func checkParts(t interface{ Fatalf(string, ...any) }, d *Dataset, parts []*Dataset) int {
	seen := map[int]bool{}
	for c, p := range parts {
		if p.Len() == 0 {
			t.Fatalf("client %d of %d is empty", c, len(parts))
		}
		for i := range p.Len() {
			row := numberOf(p, i)
			if seen[row] || row >= d.Len() || p.Labels[i] != d.Labels[row] ||
				p.Writers[i] != d.Writers[row] {
				t.Fatalf("row %d repeated, or not with its own label and writer", row)
			}
			seen[row] = true
		}
	}
	return len(seen)
}

func TestPartitionProperties(t *testing.T) {
	for _, name := range PartitionNames() {
		if strings.Contains(name, "colour") || strings.Contains(name, "rotation") {
			continue // they deal as iid or label-skew does; see TestColour and the like
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				d := pictures(rapid.IntRange(40, 600).Draw(t, "rows"), rapid.IntRange(3, 10).Draw(t, "classes"))
				o := PartitionOptions{
					Clients:       rapid.IntRange(1, 12).Draw(t, "clients"),
					Seed:          rapid.Uint64().Draw(t, "seed"),
					Concentration: rapid.SampledFrom([]float64{0, 1e-3, 0.1, 100}).Draw(t, "concentration"),
				}
				parts, _, err := Partition(name, d, nil, o)
				if errors.Is(err, ErrTooFewRows) && (name == "one-class" || name == "label-skew") {
					t.Skip("too few rows")
				}
				if err != nil {
					t.Fatal(err)
				}
				dealt := checkParts(t, d, parts)
				if len(parts) != o.Clients {
					t.Fatalf("%d clients, want %d", len(parts), o.Clients)
				}
				if (name == "iid" || strings.HasPrefix(name, "dirichlet")) && dealt != d.Len() {
					t.Fatalf("%d of %d rows dealt", dealt, d.Len())
				}
				again, _, err := Partition(name, d, nil, o)
				if err != nil {
					t.Fatal(err)
				}
				for c := range parts {
					if !slices.Equal(parts[c].Pixels, again[c].Pixels) {
						t.Fatalf("client %d has other rows the second time", c)
					}
				}
			})
		})
	}
}

func TestPartitionSeeds(t *testing.T) {
	d := pictures(500, 5)
	for _, name := range []string{"iid", "label-skew", "one-class", "dirichlet-labels",
		"dirichlet-quantity", "writers"} {
		a, _, err := Partition(name, d, nil, PartitionOptions{Clients: 5, Seed: 1})
		must(t, err)
		b, _, err := Partition(name, d, nil, PartitionOptions{Clients: 5, Seed: 2})
		must(t, err)
		if slices.Equal(a[0].Pixels, b[0].Pixels) {
			t.Errorf("%s: the seed has no influence", name)
		}
	}
}

// classesOf counts the rows of each class.
func classesOf(d *Dataset, classes int) []int {
	counts := make([]int, classes)
	for _, y := range d.Labels {
		counts[y]++
	}
	return counts
}

// TestPartitionMNIST checks the shapes of the partitions on the set they are
// meant for.
func TestPartitionMNIST(t *testing.T) {
	train, test := mnist(t)
	deal := func(name string, o PartitionOptions) []*Dataset {
		parts, unseen, err := Partition(name, train, test, o)
		must(t, err)
		if unseen != test {
			t.Errorf("%s: another test set", name)
		}
		return parts
	}
	for _, clients := range []int{10, 100} {
		total := 0
		for c, p := range deal("label-skew", PartitionOptions{Clients: clients, Seed: 1}) {
			counts := classesOf(p, 10)
			slices.Sort(counts)
			if got := float64(counts[8]+counts[9]) / float64(p.Len()); math.Abs(got-0.9) > 0.002 {
				t.Errorf("client %d: two classes hold %.4f", c, got)
			}
			if counts[0] == 0 {
				t.Errorf("client %d lacks a class", c)
			}
			total += p.Len()
		}
		if total < 53000 {
			t.Errorf("label-skew deals %d rows only", total)
		}
		for c, p := range deal("one-class", PartitionOptions{Clients: clients, Seed: 1}) {
			if counts := classesOf(p, 10); slices.Max(counts) != p.Len() {
				t.Errorf("client %d has the classes %v", c, counts)
			}
		}
	}
	// With a large concentration all clients are alike, with a small one not.
	for _, c := range []struct {
		name          string
		concentration float64
		low, high     float64
	}{
		{"dirichlet-labels", 1e6, 0.09, 0.13}, {"dirichlet-labels", 0.05, 0.5, 1},
		{"dirichlet-quantity", 1e6, 0.09, 0.13}, {"dirichlet-quantity", 0.5, 0.09, 0.13},
	} {
		var main float64
		parts := deal(c.name, PartitionOptions{Clients: 10, Seed: 1, Concentration: c.concentration})
		for _, p := range parts {
			main += float64(slices.Max(classesOf(p, 10))) / 60000
		}
		if main < c.low || main > c.high {
			t.Errorf("%s at %v: main classes hold %.3f, want %v to %v", c.name, c.concentration, main, c.low,
				c.high)
		}
	}
	if parts := deal("writers", PartitionOptions{}); len(parts) != 539 || parts[0].Features != 784 {
		t.Errorf("%d writers", len(parts))
	}
	if parts := deal("writers", PartitionOptions{Clients: 30, Seed: 1}); len(parts) != 30 {
		t.Errorf("%d writers, want 30", len(parts))
	}
}

// TestDirichletLaw: the mean square of a proportion is (a+1)/(n(na+1)).
func TestDirichletLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, a := range []float64{0.01, 0.5, 3} {
		const n, draws = 5, 20000
		var sum, square, fourth float64
		for range draws {
			p := dirichlet(n, a, rng)[0]
			sum += p
			square += p * p
			fourth += p * p * p * p
		}
		want := (a + 1) / (n * (n*a + 1))
		// Five standard errors, exceeded for one seed in 1.7 million; this is fixed.
		tolerance := 5 * math.Sqrt(fourth/draws/draws)
		if got := square / draws; math.Abs(got-want) > tolerance {
			t.Errorf("concentration %v: mean square %v, want %v ± %v", a, got, want, tolerance)
		}
		if got := sum / draws; math.Abs(got-1.0/n) > 5*math.Sqrt(square)/draws {
			t.Errorf("concentration %v: mean %v", a, got)
		}
	}
}

func TestColour(t *testing.T) {
	d, test := pictures(90, 3), pictures(9, 3)
	parts, unseen, err := Partition("colour", d, test, PartitionOptions{Clients: 3, Seed: 1})
	must(t, err)
	plain, _, err := Partition("iid", d, test, PartitionOptions{Clients: 3, Seed: 1})
	must(t, err)
	// Which planes carry the image: red, green, blue and, for the test, magenta.
	for i, want := range [][3]byte{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}} {
		p := unseen
		if i < 3 {
			p = parts[i]
			if !slices.Equal(p.Labels, plain[i].Labels) {
				t.Errorf("client %d has other rows than with iid", i)
			}
		}
		if p.Features != 48 {
			t.Fatalf("%d features, want 48", p.Features)
		}
		for r := range p.Len() {
			row := p.Pixels[r*48 : (r+1)*48]
			number := row[5] + row[16+5] + row[32+5]
			if want == [3]byte{1, 0, 1} {
				number /= 2
			}
			for k, on := range want {
				if row[16*k+5] != on*number {
					t.Fatalf("set %d row %d: plane %d holds %d of %d", i, r, k, row[16*k+5], number)
				}
			}
		}
	}
	if d.Features != 16 || numberOf(d, 7) != 7 {
		t.Error("colour changed its input")
	}
	// Halfway between red and yellow green is half on.
	if p := test.painted(all(30)).Pixels; p[16+5] != 0 || p[48+16+5] != 1 || p[3*48+5] != 3 ||
		p[3*48+16+5] != 2 {
		t.Errorf("hue 30°: %v", p[:96])
	}
}

func TestRotation(t *testing.T) {
	image := &Dataset{Features: 9, Labels: []int{0}, Pixels: []byte{
		10, 20, 30,
		40, 50, 60,
		70, 80, 90,
	}}
	for angle, want := range map[float64][]byte{
		0:   image.Pixels,
		90:  {30, 60, 90, 20, 50, 80, 10, 40, 70},
		180: {90, 80, 70, 60, 50, 40, 30, 20, 10},
		-90: {70, 40, 10, 80, 50, 20, 90, 60, 30},
	} {
		if got := image.turned(all(angle)).Pixels; !slices.Equal(got, want) {
			t.Errorf("turned by %v°: %v, want %v", angle, got, want)
		}
	}
	d, test := pictures(90, 3), pictures(9, 3)
	parts, unseen, err := Partition("rotation", d, test, PartitionOptions{Clients: 3, Seed: 1})
	must(t, err)
	plain, _, err := Partition("iid", d, test, PartitionOptions{Clients: 3, Seed: 1})
	must(t, err)
	for c, angle := range []float64{0, 30, 60} {
		if !slices.Equal(parts[c].Pixels, plain[c].turned(all(angle)).Pixels) {
			t.Errorf("client %d is not its share of iid turned by %v°", c, angle)
		}
	}
	if !slices.Equal(unseen.Pixels, test.turned(all(75)).Pixels) ||
		slices.Equal(unseen.Pixels, test.Pixels) {
		t.Error("the test set is not turned by 75°")
	}
}

// all is the same for every row, and byLabel for the rows of a label.
func all(x float64) func(int) float64 { return func(int) float64 { return x } }

func byLabel(d *Dataset, of func(label int) float64) func(int) float64 {
	return func(row int) float64 { return of(d.Labels[row]) }
}

// Every label of a client has its own hue, other clients' hues of it are in the same
// band, and no test hue is in any band; the rows are those of iid or label-skew.
func TestLabelColour(t *testing.T) {
	d := pictures(300, 10)
	for _, split := range []string{"iid", "label-skew"} {
		name := map[string]string{"iid": "label-colour", "label-skew": "label-colour-skew"}[split]
		parts, unseen, err := Partition(name, d, pictures(90, 10), PartitionOptions{Clients: 3, Seed: 1})
		must(t, err)
		plain, _, err := Partition(split, d, nil, PartitionOptions{Clients: 3, Seed: 1})
		must(t, err)
		hues := map[float64]int{}
		for c, p := range parts {
			want := plain[c].painted(byLabel(plain[c], func(y int) float64 {
				return 24*float64(y) + 10*float64(c)
			}))
			if !slices.Equal(p.Pixels, want.Pixels) || !slices.Equal(p.Labels, plain[c].Labels) {
				t.Errorf("%s: client %d has other rows or hues", name, c)
			}
			for y := range 10 {
				hues[24*float64(y)+10*float64(c)]++
			}
		}
		if len(hues) != 30 {
			t.Errorf("%d hues for three clients and ten labels", len(hues))
		}
		seen := map[float64]bool{}
		want := pictures(90, 10).painted(byLabel(pictures(90, 10), func(y int) float64 {
			hue := 252 + 8*float64(7*y%10)
			seen[hue] = true
			return hue
		}))
		if !slices.Equal(unseen.Pixels, want.Pixels) || len(seen) != 10 {
			t.Errorf("%s: the test set has %d hues, or others", name, len(seen))
		}
		for hue := range seen {
			if hue <= 9*24+20 || hue > 324 {
				t.Errorf("%s: the test hue %v is one of training", name, hue)
			}
		}
	}
}

func TestLabelRotation(t *testing.T) {
	d, test := pictures(300, 10), pictures(30, 10)
	angles := []float64{10, -10, 20, -20, 30, -30, 40, -40, 50, -50}
	for name, split := range map[string]string{"label-rotation": "iid",
		"label-rotation-skew": "label-skew"} {
		parts, unseen, err := Partition(name, d, test, PartitionOptions{Clients: 3, Seed: 1})
		must(t, err)
		plain, _, err := Partition(split, d, nil, PartitionOptions{Clients: 3, Seed: 1})
		must(t, err)
		for c, p := range parts {
			want := plain[c].turned(byLabel(plain[c], func(y int) float64 { return angles[y] }))
			if !slices.Equal(p.Pixels, want.Pixels) || slices.Equal(p.Pixels, plain[c].Pixels) {
				t.Errorf("%s: client %d is not turned as its labels are", name, c)
			}
		}
		if unseen != test {
			t.Errorf("%s: the test images are turned", name)
		}
	}
	many := pictures(60, 11)
	if _, _, err := Partition("label-rotation", many, many,
		PartitionOptions{Clients: 2}); !errors.Is(err, ErrValue) {
		t.Errorf("eleven labels: %v", err)
	}
}

// Loose colours and angles are their label's but for that share, in which they are any label's, and
// the rows stay as they are. False alarms: a count of 3,000 is off by five standard deviations once
// in 1.7 million.
func TestLooseFeatures(t *testing.T) {
	const loose = 0.3
	d := pictures(3000, 10)
	for _, name := range []string{"label-colour-skew", "label-rotation"} {
		tight, _, err := Partition(name, d, pictures(30, 10), PartitionOptions{Clients: 1, Seed: 1})
		must(t, err)
		parts, _, err := Partition(name, d, pictures(30, 10),
			PartitionOptions{Clients: 1, Seed: 1, Loose: loose})
		must(t, err)
		if !slices.Equal(parts[0].Labels, tight[0].Labels) {
			t.Fatalf("%s: other rows than without", name)
		}
		// A label drawn from all ten is the own one once in ten.
		other, n := 0.0, float64(tight[0].Len())
		width := tight[0].Features
		for i := range tight[0].Labels {
			if !slices.Equal(parts[0].Pixels[i*width:(i+1)*width], tight[0].Pixels[i*width:(i+1)*width]) {
				other++
			}
		}
		p := loose * 0.9
		if off := math.Abs(other-n*p) / math.Sqrt(n*p*(1-p)); off > 5 {
			t.Errorf("%s: %v of %v images are as another label's, %.1f standard deviations off", name,
				other, n, off)
		}
	}
	for _, bad := range []float64{-0.1, 1, math.NaN()} {
		if _, _, err := Partition("label-colour", d, pictures(30, 10),
			PartitionOptions{Clients: 2, Loose: bad}); !errors.Is(err, ErrValue) {
			t.Errorf("loose %v: %v", bad, err)
		}
	}
}

func TestPartitionPersonal(t *testing.T) {
	d, test := pictures(2000, 10), pictures(500, 10)
	clients, err := PartitionPersonal(d, test, PersonalOptions{Clients: 15, Test: 40, Seed: 3})
	must(t, err)
	seen := map[int]bool{}
	holders := map[int]int{}
	for c, p := range clients {
		classes := map[int]bool{}
		for _, part := range []struct {
			d *Dataset
			n int
		}{{p.Train, 25}, {p.Validation, 25}, {p.Test, 20}} {
			counts := map[int]int{}
			for i, y := range part.d.Labels {
				counts[y]++
				classes[y] = true
				if part.d != p.Test {
					if k := numberOf(part.d, i); seen[k] {
						t.Fatalf("client %d: row %d is dealt twice", c, k)
					} else {
						seen[k] = true
					}
				}
			}
			for y, n := range counts {
				if n != part.n {
					t.Errorf("client %d has %d rows of label %d, want %d", c, n, y, part.n)
				}
			}
		}
		if len(classes) != 2 {
			t.Errorf("client %d has %d classes over its three sets", c, len(classes))
		}
		for y := range classes {
			holders[y]++
		}
	}
	for y := range 10 {
		if holders[y] != 3 {
			t.Errorf("label %d has %d holders of 15 clients, want 3", y, holders[y])
		}
	}
	clients, err = PartitionPersonal(pictures(8000, 10), test,
		PersonalOptions{Clients: 15, Concentration: 0.5, Test: 40, Seed: 3})
	must(t, err)
	for c, p := range clients {
		if p.Train.Len() != 50 || p.Validation.Len() != 50 || p.Test.Len() != 40 {
			t.Errorf("client %d: %d, %d and %d rows", c, p.Train.Len(), p.Validation.Len(), p.Test.Len())
		}
	}
	for _, o := range []PersonalOptions{{}, {Clients: 1, Classes: 11}, {Clients: 1, Train: -1},
		{Clients: 1, Concentration: -1}} {
		if _, err := PartitionPersonal(d, test, o); !errors.Is(err, ErrValue) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := PartitionPersonal(d, test, PersonalOptions{Clients: 100}); !errors.Is(err,
		ErrTooFewRows) {
		t.Errorf("100 clients of 100 rows out of 2,000: %v", err)
	}
}

func TestPartitionRejectsNames(t *testing.T) {
	d := pictures(60, 3)
	_, _, err := Partition("nonsense", d, nil, PartitionOptions{Clients: 2})
	if !errors.Is(err, ErrValue) {
		t.Fatalf("unknown name: %v", err)
	}
	for _, name := range PartitionNames() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q is missing in %q", name, err)
		}
		for _, c := range []struct {
			o    PartitionOptions
			want error
		}{
			{PartitionOptions{Clients: -1}, ErrValue},
			{PartitionOptions{Clients: 61}, ErrTooFewRows},
			{PartitionOptions{Clients: 2, Share: 1}, ErrValue},
			{PartitionOptions{Clients: 2, Share: math.NaN()}, ErrValue},
			{PartitionOptions{Clients: 2, Concentration: -1}, ErrValue},
			{PartitionOptions{Clients: 2, Concentration: math.Inf(1)}, ErrValue},
		} {
			if parts, _, err := Partition(name, d, d, c.o); parts != nil || !errors.Is(err, c.want) {
				t.Errorf("%s %+v: %v", name, c.o, err)
			}
		}
		if _, _, err := Partition(name, nil, nil, PartitionOptions{Clients: 1}); !errors.Is(err,
			ErrShape) {
			t.Errorf("%s of nothing: %v", name, err)
		}
		if name != "writers" {
			if _, _, err := Partition(name, d, d, PartitionOptions{}); !errors.Is(err, ErrValue) {
				t.Errorf("%s for no clients: %v", name, err)
			}
		}
	}
	two := PartitionOptions{Clients: 2}
	flat := scattered(60, 7, 3, 1)
	for _, name := range []string{"colour", "rotation"} {
		for _, test := range []*Dataset{nil, flat} {
			if _, _, err := Partition(name, d, test, two); !errors.Is(err, ErrValue) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wide := &Dataset{Features: 15, Pixels: make([]byte, 60), Labels: make([]int, 4)}
		if _, _, err := Partition(name, wide, wide, two); !errors.Is(err, ErrValue) {
			t.Errorf("%s of images that are not square: %v", name, err)
		}
	}
	if _, _, err := Partition("writers", flat, nil, two); !errors.Is(err, ErrValue) {
		t.Errorf("no writers: %v", err)
	}
	if _, _, err := Partition("writers", d, flat, two); !errors.Is(err, ErrValue) {
		t.Errorf("no writers in the test set: %v", err)
	}
	if _, _, err := Partition("writers", d, d, two); !errors.Is(err, ErrValue) {
		t.Errorf("shared writers: %v", err)
	}
	if _, _, err := Partition("writers", d, nil, PartitionOptions{Clients: 22}); !errors.Is(err,
		ErrTooFewRows) {
		t.Errorf("22 of 21 writers: %v", err)
	}
	if _, _, err := Partition("label-skew", pictures(60, 2), nil, two); !errors.Is(err, ErrValue) {
		t.Errorf("label-skew over two classes: %v", err)
	}
	rare := pictures(60, 1)
	rare.Labels[0], rare.Labels[1] = 1, 2
	for _, name := range []string{"one-class", "label-skew"} {
		if _, _, err := Partition(name, rare, nil, PartitionOptions{Clients: 60}); !errors.Is(err,
			ErrTooFewRows) {
			t.Errorf("%s for 60 clients: %v", name, err)
		}
	}
}
