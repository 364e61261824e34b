package simulate

import (
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/simulation"
)

// part is one component of a party's cost over the whole run.
type part struct {
	name     string // as a row's label
	work     string // what takes the time
	traffic  string // what takes the bytes
	time     time.Duration
	up, down int64
}

func (p *part) bytes() int64 { return p.up + p.down }

// costs prints what a party and the server spent on set-up and on a given number of rounds in
// total, and on what they spent most; model is the bytes of the broadcast models.
func (t sheet) costs(title string, setup, total simulation.Cost, rounds int, model int64) {
	in := show.Plural(rounds, "round")
	list := []part{
		{"key exchange, once", "the key exchange", "the key exchange", setup.Client, setup.BytesUp,
			setup.BytesDown},
		{"training, " + in, "training", "the broadcast model", total.Train, 0, model},
		{"private sum, " + in, "the private sum", "the private sum", total.Client, total.BytesUp,
			total.BytesDown - model},
	}
	var spent time.Duration
	var bytes int64
	slowest, largest := list[0], list[0]
	for _, p := range list {
		spent += p.time
		bytes += p.bytes()
		if p.time > slowest.time {
			slowest = p
		}
		if p.bytes() > largest.bytes() {
			largest = p
		}
	}
	t.Printf("\n%-28s %9s %9s %9s %11s\n", title, "ms", "share", "bytes up", "bytes down")
	for _, p := range list {
		t.Printf("  %-26s %9s %8.0f%% %9s %11s\n", p.name, show.Short(p.time),
			show.Percent(p.time, spent), show.Grouped(int(p.up)), show.Grouped(int(p.down)))
	}
	t.Printf("  %-26s %9s\n", "the server, for all", show.Short(setup.Server+total.Server))
	time, traffic := show.Percent(slowest.time, spent), show.Percent(largest.bytes(), bytes)
	if slowest.work == largest.traffic {
		t.Sentence("The largest part of a party's time (%.0f%%) and of its bytes (%.0f%%) goes into %s.",
			time, traffic, slowest.work)
		return
	}
	t.Sentence(
		"The largest part of a party's time goes into %s (%.0f%%), of its bytes into %s (%.0f%%).",
		slowest.work, time, largest.traffic, traffic)
}
