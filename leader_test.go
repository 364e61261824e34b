package hushsum

import (
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
)

// decisions is a lead that has some to make, the second of which need not be saved.
type decisions struct {
	drive.Lead
	left int
	did  *[]string
}

func (d *decisions) Tick(drive.Time) error { return nil }

func (d *decisions) Ready() (drive.Prepared, bool) {
	return drive.Prepared{Save: d.left != 2}, d.left > 0
}

func (d *decisions) Advance(drive.Time) drive.Orders {
	*d.did = append(*d.did, "advance")
	d.left--
	return drive.Orders{}
}

// What a coordinator decides is saved before anything of it leaves, with parties and with a
// committee: both decide here. Where it cannot be saved, nothing leaves.
func TestSavedBeforeItIsFollowed(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails int // the save that fails; 0: none
		want  []string
	}{
		{"all are saved", 0, []string{"save", "advance", "follow", "advance", "follow",
			"save", "advance", "follow"}},
		{"the last fails", 2, []string{"save", "advance", "follow", "advance", "follow", "save"}},
	} {
		var did []string
		saves := 0
		err := new(leader).decide(&decisions{left: 3, did: &did}, func() error {
			did = append(did, "save")
			if saves++; saves == c.fails {
				return errDisk
			}
			return nil
		}, func(drive.Orders) { did = append(did, "follow") })
		if errors.Is(err, errDisk) != (c.fails > 0) || !slices.Equal(did, c.want) {
			t.Errorf("%s: %v, %v", c.name, did, err)
		}
	}
}
