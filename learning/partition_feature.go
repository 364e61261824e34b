package learning

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/internal/fault"
)

const (
	clientHues  = 240.0 // degrees between the first and the last client
	testHue     = 300.0
	clientAngle = 60.0
	testAngle   = 75.0
)

// along is the place of client c of n on a way from 0 to end.
func along(end float64, c, n int) float64 {
	return end * float64(c) / float64(max(1, n-1))
}

// paint colours the clients' images and the test images, see Partition.
func paint(clients []*Dataset, test *Dataset, _ PartitionOptions, _ *rand.Rand) (*Dataset, error) {
	if err := checkImages(clients[0], test, "colour"); err != nil {
		return nil, err
	}
	for c, d := range clients {
		hue := along(clientHues, c, len(clients))
		clients[c] = d.painted(func(int) float64 { return hue })
	}
	return test.painted(func(int) float64 { return testHue }), nil
}

// turn rotates the clients' images and the test images, see Partition.
func turn(clients []*Dataset, test *Dataset, _ PartitionOptions, _ *rand.Rand) (*Dataset, error) {
	if err := checkImages(clients[0], test, "rotation"); err != nil {
		return nil, err
	}
	for c, d := range clients {
		angle := along(clientAngle, c, len(clients))
		clients[c] = d.turned(func(int) float64 { return angle })
	}
	return test.turned(func(int) float64 { return testAngle }), nil
}

// Ten labels have hues of their own, each in a band where every client has its place;
// the test set has them where no label is.
const (
	hueStep     = 24.0
	hueBand     = 20.0
	testHues    = 252.0
	testHueStep = 8.0
)

// paintLabels colours images by their labels, see Partition.
func paintLabels(
	clients []*Dataset, test *Dataset, o PartitionOptions, rng *rand.Rand,
) (*Dataset, error) {
	if err := checkImages(clients[0], test, "label-colour"); err != nil {
		return nil, err
	}
	if err := checkTenLabels(clients, test, "label-colour"); err != nil {
		return nil, err
	}
	for c, d := range clients {
		place := along(hueBand, c, len(clients))
		seems := d.seeming(o.Loose, rng)
		clients[c] = d.painted(func(i int) float64 { return hueStep*float64(seems[i]) + place })
	}
	// Seven steps on for each label: neighbours in training are no neighbours here.
	return test.painted(func(i int) float64 {
		return testHues + testHueStep*float64(7*test.Labels[i]%10)
	}), nil
}

// turnLabels rotates the clients' images by their labels, see Partition.
func turnLabels(
	clients []*Dataset, test *Dataset, o PartitionOptions, rng *rand.Rand,
) (*Dataset, error) {
	if err := checkImages(clients[0], test, "label-rotation"); err != nil {
		return nil, err
	}
	if err := checkTenLabels(clients, test, "label-rotation"); err != nil {
		return nil, err
	}
	for c, d := range clients {
		seems := d.seeming(o.Loose, rng)
		clients[c] = d.turned(func(i int) float64 {
			return float64(10*(1+seems[i]/2)) * float64(1-2*(seems[i]%2))
		})
	}
	return test, nil
}

// seeming returns the labels whose colour or angle images have: their own, but for a share of them
// one of all ten at random.
func (d *Dataset) seeming(loose float64, rng *rand.Rand) []int {
	if loose == 0 {
		return d.Labels
	}
	labels := slices.Clone(d.Labels)
	for i := range labels {
		if rng.Float64() < loose {
			labels[i] = rng.IntN(10)
		}
	}
	return labels
}

func checkTenLabels(clients []*Dataset, test *Dataset, name string) error {
	for _, d := range append([]*Dataset{test}, clients...) {
		for i, y := range d.Labels {
			if y > 9 {
				return fault.New(ErrValue, "",
					"%s has a colour or angle for each of ten labels, and row %d has label %d",
					name, i, y)
			}
		}
	}
	return nil
}

func checkImages(client, test *Dataset, name string) error {
	if test == nil {
		return fault.New(ErrValue, "", "%s needs a test set", name)
	}
	if client.Pixels == nil || test.Pixels == nil {
		return fault.New(ErrValue, "", "%s needs images of Pixels, such as those of ReadMNIST", name)
	}
	if side := side(client); client.Features != test.Features || side*side != client.Features {
		return fault.New(ErrValue, "",
			"%s needs square grey images of one size, not %d and %d pixels",
			name, client.Features, test.Features)
	}
	return nil
}

func side(d *Dataset) int { return int(math.Round(math.Sqrt(float64(d.Features)))) }

// painted returns the images in fully saturated colours, as three planes; hue is in
// degrees, by row.
func (d *Dataset) painted(hue func(row int) float64) *Dataset {
	p := &Dataset{
		Pixels:   make([]byte, 0, 3*len(d.Pixels)),
		Features: 3 * d.Features,
		Labels:   d.Labels,
		Writers:  d.Writers,
	}
	for i := range d.Labels {
		at := hue(i)
		// Each primary is full within 60° of its own hue and gone from 120° on.
		for k := range 3 {
			away := math.Abs(math.Mod(at-120*float64(k)+540, 360) - 180)
			part := max(0, min(1, 2-away/60))
			for _, x := range d.Pixels[i*d.Features : (i+1)*d.Features] {
				p.Pixels = append(p.Pixels, byte(math.Round(part*float64(x))))
			}
		}
	}
	return p
}

// source says where a pixel comes from, and how much of each.
type source struct {
	at     [4]int
	weight [4]float64
}

// sourcesOf returns where every pixel of an image of n × n comes from when it is turned
// counter-clockwise about its centre by an angle in degrees.
func sourcesOf(n int, angle float64) []source {
	sources := make([]source, n*n)
	sin, cos := math.Sincos(angle * math.Pi / 180)
	centre := float64(n-1) / 2
	for row := range n {
		for col := range n {
			// y points down, so turning back clockwise has these signs.
			x, y := float64(col)-centre, float64(row)-centre
			fromCol, fromRow := cos*x-sin*y+centre, sin*x+cos*y+centre
			left, top := math.Floor(fromCol), math.Floor(fromRow)
			fx, fy := fromCol-left, fromRow-top
			s := &sources[row*n+col]
			for k, w := range [4]float64{(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy} {
				c, r := int(left)+k%2, int(top)+k/2
				if c >= 0 && c < n && r >= 0 && r < n {
					s.at[k], s.weight[k] = r*n+c, w
				}
			}
		}
	}
	return sources
}

// turned returns the images turned counter-clockwise about their centre by an angle
// in degrees, by row, interpolated bilinearly.
func (d *Dataset) turned(angle func(row int) float64) *Dataset {
	n := side(d)
	known := map[float64][]source{} // the same for all images of an angle
	p := &Dataset{
		Pixels:   make([]byte, 0, len(d.Pixels)),
		Features: d.Features,
		Labels:   d.Labels,
		Writers:  d.Writers,
	}
	for i := range d.Labels {
		by := angle(i)
		if known[by] == nil {
			known[by] = sourcesOf(n, by)
		}
		image := d.Pixels[i*d.Features : (i+1)*d.Features]
		for _, s := range known[by] {
			var sum float64
			for k, at := range s.at {
				sum += s.weight[k] * float64(image[at])
			}
			p.Pixels = append(p.Pixels, byte(math.Round(min(255, sum))))
		}
	}
	return p
}
