package learning

import (
	"fmt"
	"math"
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
func paint(clients []*Dataset, test *Dataset) (*Dataset, error) {
	if err := checkImages(clients[0], test, "colour"); err != nil {
		return nil, err
	}
	for c, d := range clients {
		clients[c] = d.painted(along(clientHues, c, len(clients)))
	}
	return test.painted(testHue), nil
}

// turn rotates the clients' images and the test images, see Partition.
func turn(clients []*Dataset, test *Dataset) (*Dataset, error) {
	if err := checkImages(clients[0], test, "rotation"); err != nil {
		return nil, err
	}
	for c, d := range clients {
		clients[c] = d.turned(along(clientAngle, c, len(clients)))
	}
	return test.turned(testAngle), nil
}

func checkImages(client, test *Dataset, name string) error {
	if test == nil {
		return fmt.Errorf("%w: %s needs a test set", ErrValue, name)
	}
	if client.Pixels == nil || test.Pixels == nil {
		return fmt.Errorf("%w: %s needs images of Pixels, such as those of ReadMNIST", ErrValue, name)
	}
	if side := side(client); client.Features != test.Features || side*side != client.Features {
		return fmt.Errorf("%w: %s needs square grey images of one size, not %d and %d pixels", ErrValue, name, client.Features, test.Features)
	}
	return nil
}

func side(d *Dataset) int { return int(math.Round(math.Sqrt(float64(d.Features)))) }

// painted returns the images in the fully saturated colour of a hue in degrees,
// as three planes.
func (d *Dataset) painted(hue float64) *Dataset {
	p := &Dataset{
		Pixels:   make([]byte, 0, 3*len(d.Pixels)),
		Features: 3 * d.Features,
		Labels:   d.Labels,
		Writers:  d.Writers,
	}
	// Each primary is full within 60° of its own hue and gone from 120° on.
	var colour [3]float64
	for k := range colour {
		away := math.Abs(math.Mod(hue-120*float64(k)+540, 360) - 180)
		colour[k] = max(0, min(1, 2-away/60))
	}
	for i := range d.Len() {
		for _, part := range colour {
			for _, x := range d.Pixels[i*d.Features : (i+1)*d.Features] {
				p.Pixels = append(p.Pixels, byte(math.Round(part*float64(x))))
			}
		}
	}
	return p
}

// turned returns the images turned counter-clockwise about their centre by an
// angle in degrees, interpolated bilinearly.
func (d *Dataset) turned(angle float64) *Dataset {
	n := side(d)
	// Where every pixel comes from is the same for all images.
	type source struct {
		at     [4]int
		weight [4]float64
	}
	sources := make([]source, d.Features)
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
	p := &Dataset{
		Pixels:   make([]byte, 0, len(d.Pixels)),
		Features: d.Features,
		Labels:   d.Labels,
		Writers:  d.Writers,
	}
	for i := range d.Len() {
		image := d.Pixels[i*d.Features : (i+1)*d.Features]
		for _, s := range sources {
			var sum float64
			for k, at := range s.at {
				sum += s.weight[k] * float64(image[at])
			}
			p.Pixels = append(p.Pixels, byte(math.Round(min(255, sum))))
		}
	}
	return p
}
