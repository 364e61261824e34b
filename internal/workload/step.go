package workload

import "math"

// step moves weights. At the best ones more weight of a count gains as much as it costs, by the
// prices of the norm that its cells add; weights of counts that gain less are 0.
func (d *design) step() {
	price := make([]float64, 2*d.size)
	copy(price[d.size:], d.price)
	for k := d.size - 1; k > 0; k-- {
		price[k] = price[2*k] + price[2*k+1]
	}
	// Prices are in the unit of gains: both add up to the same.
	gain, cost := 0.0, 0.0
	costs := make([]float64, len(d.sets))
	for k := 1; k < len(d.node); k++ {
		gain += float64(d.node[k] * d.gain[k])
		cost += float64(d.node[k] * price[k])
	}
	for s, set := range d.sets {
		for _, j := range set {
			costs[s] += d.price[j]
		}
		gain += float64(d.weight[s] * d.gainSets[s])
		cost += float64(d.weight[s] * costs[s])
	}
	unit := gain / cost
	for k := 1; k < len(d.node); k++ {
		if d.node[k] > 0 {
			d.node[k] = float64(d.node[k] * math.Sqrt(d.gain[k]/float64(price[k]*unit)))
		}
	}
	for s := range d.sets {
		d.weight[s] = float64(d.weight[s] * math.Sqrt(d.gainSets[s]/float64(costs[s]*unit)))
	}
	for j, load := range d.loads() {
		d.price[j] = float64(d.price[j] * unit * load)
	}
	d.fit()
}

// trim leaves counts of little weight out.
func (d *design) trim() {
	for k := 1; k < d.size; k++ {
		if d.node[k] < little {
			d.node[k] = 0
		}
	}
	kept := 0
	for s, set := range d.sets {
		if d.weight[s] >= little {
			d.sets[kept], d.weight[kept] = set, d.weight[s]
			kept++
		}
	}
	d.sets, d.weight, d.gainSets = d.sets[:kept], d.weight[:kept], d.gainSets[:kept]
	d.fit()
}

// strategy returns what has come of it.
func (d *design) strategy(cells *Cells) *Strategy {
	s := &Strategy{Cells: cells, Share: d.share, Ratio: d.ratio, system: d.system}
	for k := 1; k < len(d.node); k++ {
		if d.node[k] == 0 {
			continue
		}
		c := Count{Square: d.node[k]}
		from, to := k, k+1
		for from < d.size {
			from, to = 2*from, 2*to
		}
		for j := from - d.size; j < min(to-d.size, d.cells); j++ {
			c.Cells = append(c.Cells, int32(j))
		}
		s.Counts = append(s.Counts, c)
	}
	for i, set := range d.sets {
		s.Counts = append(s.Counts, Count{Cells: set, Square: d.weight[i]})
	}
	return s
}
