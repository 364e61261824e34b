package query

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hushsum/hushsum/job"
)

// axis cuts the values of a column into bins.
type axis struct {
	*job.Column
	at   int // place of the column in the schema
	bins int
}

// half and mid are of the range: a value is mid + half·y, and |y| ≤ 1.
func (a *axis) half() float64 { return (a.Range[1] - a.Range[0]) / 2 }
func (a *axis) mid() float64  { return a.Range[0] + a.half() }

// scaled returns y. The middle of a range is not always a float64, and of one with little room
// between its ends may be an end; y is still not to be above 1, since the noise is for that.
func (a *axis) scaled(x float64) float64 {
	return min(max((x-a.mid())/a.half(), -1), 1)
}

// width is how wide a bin is.
func (a *axis) width() float64 { return a.BinWidth(a.bins) }

// bin returns the bin of a value, which is inside of the range.
func (a *axis) bin(x float64) int { return a.Bin(x, a.bins) }

// edge is where a bin begins, and the one before it ends: bins is the end of the last.
func (a *axis) edge(bin int) float64 { return a.Range[0] + float64(bin)*a.width() }

// share returns which part of values that are spread evenly over the range is below an edge.
func (a *axis) share(edge int) float64 {
	return min(1, float64(edge)*a.width()/a.Width())
}

// least and most return the ends of a bin: of whole numbers those inside.
func (a *axis) least(bin int) float64 {
	if a.Type == "whole" {
		return math.Ceil(a.edge(bin))
	}
	return a.edge(bin)
}

func (a *axis) most(bin int) float64 {
	if a.Type == "whole" {
		return min(math.Ceil(a.edge(bin+1))-1, a.Range[1])
	}
	return min(a.edge(bin+1), a.Range[1])
}

// oneEach reports whether each bin is one value of whole numbers.
func (a *axis) oneEach() bool { return a.Type == "whole" && float64(a.bins) == a.Width() }

func text(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// until names the end of a bin.
func (a *axis) until(bin int) string { return text(a.most(bin)) }

// label names a bin.
func (a *axis) label(bin int) string {
	if !a.Numeric() {
		return a.Words()[bin]
	}
	if low, high := a.least(bin), a.most(bin); low != high {
		return fmt.Sprintf("%s to %s", text(low), text(high))
	}
	return text(a.least(bin))
}
