package chart

import (
	"math"
	"strconv"
)

// Tick is a place on an axis. Without a label it is a small one.
type Tick struct {
	Value float64
	Label string
}

// Ticks returns places that are 1, 2 or 5 times a power of ten apart, four to nine of them.
func Ticks(low, high float64) (ticks []Tick) {
	if !(high > low) {
		return []Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', 4, 64)}}
	}
	exponent := int(math.Floor(math.Log10((high - low) / 4)))
	step := math.Pow10(exponent)
	for _, m := range []float64{5, 2} {
		if m*step <= (high-low)/4 {
			step *= m
			break
		}
	}
	for k := math.Ceil(low / step); k*step <= high; k++ {
		// With as many digits as the step has.
		x := k*step + 0 // 0 has no sign
		label := strconv.FormatFloat(x, 'f', max(0, -exponent), 64)
		if x != 0 && (math.Abs(x) >= 1e6 || step < 1e-5) {
			digits := int(math.Floor(math.Log10(math.Abs(x)))) - exponent + 1
			label = strconv.FormatFloat(x, 'g', digits, 64)
		}
		ticks = append(ticks, Tick{Value: x, Label: label})
	}
	return ticks
}

// Powers returns the powers of ten, and small places between them; over little more than a decade 2
// and 5 times a power have labels too.
func Powers(low, high float64) (ticks []Tick) {
	narrow := high < 30*low
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1; m < 10; m++ {
			x, err := strconv.ParseFloat(strconv.Itoa(m)+"e"+strconv.Itoa(int(e)), 64)
			if err != nil || x < low*(1-1e-12) || x > high*(1+1e-12) {
				continue
			}
			tick := Tick{Value: x}
			if m == 1 || narrow && (m == 2 || m == 5) {
				tick.Label = strconv.FormatFloat(x, 'g', -1, 64)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
