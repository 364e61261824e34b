package learning

import (
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/internal/fault"
)

func dealOneClass(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error) {
	classes := byClass(d, rng)
	rng.Shuffle(len(classes), func(i, j int) { classes[i], classes[j] = classes[j], classes[i] })
	lists := make([][]int, o.Clients)
	for k, rows := range classes {
		holders := (o.Clients - k + len(classes) - 1) / len(classes)
		if holders > len(rows) {
			return nil, fault.New(ErrTooFewRows, "use fewer clients",
				"%d clients of a class with %d rows", holders, len(rows))
		}
		for j, part := range cut(rows, holders) {
			lists[k+j*len(classes)] = part
		}
	}
	return lists, nil
}

func dealLabelSkew(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error) {
	classes := byClass(d, rng)
	if len(classes) < 3 {
		return nil, fault.New(ErrValue, "", "label-skew over %d classes, want at least 3", len(classes))
	}
	rng.Shuffle(len(classes), func(i, j int) { classes[i], classes[j] = classes[j], classes[i] })
	// Classes differ in size, so the largest size that works is found by trial.
	for m := d.Len() / o.Clients; m > 0; m -= 1 + m/100 {
		main := int(math.Round(o.Share * float64(m) / 2))
		if main == 0 {
			break
		}
		if lists := trySkew(classes, o.Clients, main, max(0, m-2*main)); lists != nil {
			for _, rows := range lists {
				rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			}
			return lists, nil
		}
	}
	return nil, fault.New(ErrTooFewRows, "use fewer clients",
		"%d rows do not give %d clients two main classes each", d.Len(), o.Clients)
}

// trySkew gives every client main rows of each of its two classes and other
// rows spread evenly over the remaining ones, or returns nil when a class runs
// out.
func trySkew(classes [][]int, clients, main, other int) [][]int {
	k := len(classes)
	left := append([][]int(nil), classes...)
	lists := make([][]int, clients)
	for c := range lists {
		for j := range k {
			n := main
			if j >= 2 {
				// The classes that get one row more go round with the client.
				n = other / (k - 2)
				if (j+c)%(k-2) < other%(k-2) {
					n++
				}
			}
			class := (2*c + j) % k
			if len(left[class]) < n {
				return nil
			}
			lists[c] = append(lists[c], left[class][:n]...)
			left[class] = left[class][n:]
		}
	}
	return lists
}
