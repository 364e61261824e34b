package attacks

// Figure is a picture to draw.
type Figure struct {
	Name   string // of a file, without extension
	Title  string
	X, Y   string // what the axes show
	LogX   bool   // whether an axis is one of powers of ten, of values above 0
	LogY   bool
	Series []Series
}

// Series is one set of values in a figure.
type Series struct {
	Label string
	Kind  Kind
	// X and Y have equal length for Line and Points. Density and Violin show the
	// sample Y, and have no X.
	X, Y []float64
}

// Kind says how a series is drawn.
type Kind int

// The kinds of series.
const (
	Line Kind = iota + 1
	Points
	Density
	Violin
)
