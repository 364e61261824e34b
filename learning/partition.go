package learning

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
)

// PartitionOptions says how Partition deals rows. Fields that a partition does
// not use are ignored.
type PartitionOptions struct {
	Clients int    // at least 1; "writers" takes 0 for every writer
	Seed    uint64 // the same seed always deals the same rows
	// Share of a client's rows that its two main classes hold, in (0, 1), for
	// "label-skew"; 0 means 0.9.
	Share float64
	// Concentration of the Dirichlet law, in [0.001, 1e6], for
	// "dirichlet-labels" (often called α) and "dirichlet-quantity" (β); 0 means
	// 0.5. The smaller it is, the less the clients are alike.
	Concentration float64
	// Loose is the share of a client's images, in [0, 1), whose colour or angle is that of a label
	// drawn at random and not of their own, for those by label. The larger it is, the more a model
	// has to go by shapes.
	Loose float64
}

// partitions are the ways to deal a training set. deal returns one list of rows
// per client; recast, when it is not nil, then changes the features.
var partitions = []struct {
	name   string
	deal   func(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error)
	recast func(c []*Dataset, test *Dataset, o PartitionOptions, rng *rand.Rand) (*Dataset, error)
}{
	{"iid", dealEvenly, nil},
	{"label-skew", dealLabelSkew, nil},
	{"one-class", dealOneClass, nil},
	{"dirichlet-labels", dealDirichletLabels, nil},
	{"dirichlet-quantity", dealDirichletQuantity, nil},
	{"colour", dealEvenly, paint},
	{"rotation", dealEvenly, turn},
	{"label-colour", dealEvenly, paintLabels},
	{"label-colour-skew", dealLabelSkew, paintLabels},
	{"label-rotation", dealEvenly, turnLabels},
	{"label-rotation-skew", dealLabelSkew, turnLabels},
	{"writers", dealWriters, checkWriters},
}

// PartitionNames lists the names that Partition knows.
func PartitionNames() []string {
	names := make([]string, len(partitions))
	for i, p := range partitions {
		names[i] = p.name
	}
	return names
}

// Partition deals the training set to clients and returns them with the test set
// that goes with them. No row goes to two clients and none is left without a
// row. Names:
//
//   - iid: all rows at random, in shares that differ by one row at most.
//   - label-skew: two main classes, with half of Share each, and the other classes
//     with equal parts of the rest. Main classes go round, so that every class is
//     main for about as many clients. All clients have the same number of rows,
//     as many as the smallest class allows.
//   - one-class: client c has one class only; the classes go round in a random
//     order, and the clients of a class share its rows evenly. Classes beyond the
//     number of clients belong to nobody.
//   - dirichlet-labels: the rows of every class are cut in proportions drawn from
//     a symmetric Dirichlet law (Hsu 2019 and others).
//   - dirichlet-quantity: random rows, in shares drawn from such a law, so that
//     only the sizes differ.
//   - colour: iid, for images of Pixels. Every client sees its digits in one
//     colour; the test set has a colour that no client saw. Rows become three
//     planes, red, green and blue, one after the other, each the grey image times
//     that part of the colour. Client c of n has the fully saturated colour of
//     hue 240°·c/(n−1), from red over green to blue, and the test set that of
//     hue 300°, magenta, 60° away from the next client.
//   - rotation: iid, for square images of Pixels. Client c of n sees its images
//     turned counter-clockwise by 60°·c/(n−1), the test images are turned by 75°.
//     Pixels are interpolated bilinearly, black outside.
//   - label-colour: iid, for images of Pixels with up to ten labels. Label d of client
//     c of n has the hue 24°·d + 20°·c/(n−1): every label has colours of its own, the
//     same band for all clients and another place in it for each. The test images have
//     hues from 252° to 324°, which no client has, so that the colour, from which a
//     client can tell the label, does not carry over. Planes are as for colour.
//   - label-rotation: iid, for square images of Pixels with up to ten labels. Labels
//     0, 1, 2, … 9 are turned counter-clockwise by 10°, −10°, 20°, −20°, … 50°, −50°;
//     test images are not turned.
//   - label-colour-skew, label-rotation-skew: the same with label-skew's rows.
//   - writers: one client per writer, Clients of them drawn at random, or all.
//     The test set must have writers too, and none of a client.
//
// colour, rotation and those by label deal the same rows as iid or label-skew does
// with the same seed. They are made after the feature skew of "Gradient Masked
// Averaging for Federated Learning" (FedCMNIST and FedRotMNIST): in its workshop form
// client and colour or angle go together, in its journal form and the thesis label and
// colour or angle do, so that a model can use what does not carry over. The angles by
// label are the paper's; the colours, and the angles by client, are this package's
// own, since they are not printed.
//
// test may be nil, and is then nil in the result, except where images are recast. It
// is otherwise returned unchanged where the list above does not say more. Errors:
// ErrValue for an unknown name (the message lists the known ones), options out of range
// or data that a name has no use for, ErrShape for a malformed data set, and
// ErrTooFewRows when a client would stay empty.
func Partition(
	name string, train, test *Dataset, o PartitionOptions,
) (clients []*Dataset, unseen *Dataset, err error) {
	if err := train.checkShape(); err != nil {
		return nil, nil, err
	}
	if test != nil {
		if err := test.checkShape(); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range partitions {
		if p.name != name {
			continue
		}
		if err := o.check(name, train); err != nil {
			return nil, nil, err
		}
		rng := rand.New(rand.NewPCG(o.Seed, streamParties))
		lists, err := p.deal(train, o.withDefaults(), rng)
		if err != nil {
			return nil, nil, err
		}
		clients = make([]*Dataset, len(lists))
		for c, rows := range lists {
			clients[c] = train.gather(rows)
		}
		if p.recast != nil {
			test, err = p.recast(clients, test, o, rng)
		}
		if err != nil {
			return nil, nil, err
		}
		return clients, test, nil
	}
	return nil, nil, fault.New(ErrValue, "",
		"no partition %q; known are %s", name, strings.Join(PartitionNames(), ", "))
}

func (o PartitionOptions) withDefaults() PartitionOptions {
	if o.Share == 0 {
		o.Share = 0.9
	}
	if o.Concentration == 0 {
		o.Concentration = 0.5
	}
	return o
}

func (o PartitionOptions) check(name string, d *Dataset) error {
	least := 1
	if name == "writers" {
		least = 0
	}
	if o.Clients < least {
		return fault.New(ErrValue, "", "%d clients, want at least %d", o.Clients, least)
	}
	if o.Clients > d.Len() || d.Len() == 0 {
		return fault.New(ErrTooFewRows, "", "%d clients and %d rows", o.Clients, d.Len())
	}
	o = o.withDefaults()
	if !(o.Share > 0 && o.Share < 1) {
		return fault.New(ErrValue, "", "share %v, want one inside (0, 1)", o.Share)
	}
	if !(o.Concentration >= 1e-3 && o.Concentration <= 1e6) {
		return fault.New(ErrValue, "", "concentration %v, want one in 0.001..1e6", o.Concentration)
	}
	if !(o.Loose >= 0 && o.Loose < 1) {
		return fault.New(ErrValue, "", "loose colours %v, want a share in [0, 1)", o.Loose)
	}
	for i, y := range d.Labels {
		if y < 0 {
			return fault.New(ErrValue, "", "the label of row %d is below 0", i)
		}
	}
	return nil
}

func dealEvenly(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error) {
	return cut(rng.Perm(d.Len()), o.Clients), nil
}

// cut divides rows into parts whose lengths differ by one at most.
func cut(rows []int, parts int) [][]int {
	lists := make([][]int, parts)
	for c := range lists {
		n := len(rows) / (parts - c)
		lists[c], rows = rows[:n:n], rows[n:]
	}
	return lists
}

// byClass returns the rows of every class that has some, in random order.
func byClass(d *Dataset, rng *rand.Rand) [][]int {
	rows := labelled(d, rng)
	labels := make([]int, 0, len(rows))
	for y := range rows {
		labels = append(labels, y)
	}
	slices.Sort(labels)
	classes := make([][]int, len(labels))
	for k, y := range labels {
		classes[k] = rows[y]
	}
	return classes
}
