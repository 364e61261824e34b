package house

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A floor holds rooms, packages with those in their folders, that do not import each other.
type floor struct {
	rooms []string // folders; "." is the root package alone
	says  string   // to its right in the picture
}

// floors are the house from the roof to the ground: a package imports rooms of floors below its
// own. docs/packages.md draws them.
var floors = []floor{
	{[]string{"cmd/hushsum", "service/cmd/hushsumd", "examples"}, "commands"},
	{[]string{"sidecar", "service", "tables"}, "other languages; many machines; rows"},
	{[]string{"attacks", "fuzz"}, "everything below, under attack"},
	{[]string{"simulation"}, "many parties on one machine"},
	{[]string{".", "training", "query"}, "jobs in processes; training; queries"},
	{[]string{"job", "drive", "learning"}, "declared; decided; models, data"},
	{[]string{"privacy", "oblivious"}, "noise and ε of what is released"},
	{[]string{"aggregation", "protocol", "oneshot"}, "floats to integers; sums"},
	{[]string{"accounting", "noise", "keyexchange", "masking", "shamir"},
		"ε; samplers; keys; rings; shares"},
}

// outside are folders next to the house: nothing of it imports them.
var outside = []string{"benchmarks", "python", "tools"}

// within reports whether a folder is one of a room.
func within(dir, room string) bool {
	return dir == room || room != "." && strings.HasPrefix(dir, room+"/")
}

// roomOf returns the room of a folder, or "", and the number of its floor from the roof. A room
// may be inside of another: the longer path counts.
func roomOf(dir string) (room string, number int) {
	for i, f := range floors {
		for _, r := range f.rooms {
			if within(dir, r) && len(r) > len(room) {
				room, number = r, i
			}
		}
	}
	return room, number
}

// internals reports whether a folder has what packages of several rooms share.
func internals(dir string) bool { return strings.HasPrefix(dir, "internal/") }

// reached returns the folders of packages that those of a folder import, tests apart, and those
// that they import by way of internal packages, each with a file that does.
func reached(all []*source, dir string) map[string]string {
	found := map[string]string{}
	var from func(dir string)
	from = func(dir string) {
		for _, s := range all {
			if s.dir() != dir || s.test() {
				continue
			}
			for _, own := range s.owns() {
				if found[own] != "" {
					continue
				}
				found[own] = s.path
				if internals(own) {
					from(own)
				}
			}
		}
	}
	from(dir)
	return found
}

// owns returns the folders of the project's packages that a file imports.
func (s *source) owns() (dirs []string) {
	for _, spec := range s.syntax.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if imported == module {
			dirs = append(dirs, ".")
		} else if own, ok := strings.CutPrefix(imported, module+"/"); ok {
			dirs = append(dirs, own)
		}
	}
	return dirs
}

// folders returns those that have Go files, in order.
func folders(all []*source) (dirs []string) {
	for _, s := range all {
		dirs = append(dirs, s.dir())
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// No package imports one of its own floor or above, also not by way of an internal package.
func TestFloors(t *testing.T) {
	all := sources(t)
	below := 0
	for _, dir := range folders(all) {
		if slices.ContainsFunc(outside, func(o string) bool { return within(dir, o) }) ||
			internals(dir) {
			continue
		}
		room, number := roomOf(dir)
		if room == "" {
			t.Errorf("%s is on no floor", dir)
			continue
		}
		for own, by := range reached(all, dir) {
			other, at := roomOf(own)
			switch {
			case slices.ContainsFunc(outside, func(o string) bool { return within(own, o) }):
				t.Errorf("%s imports %s, which is outside of the house", by, own)
			case other == room || internals(own):
			case at <= number:
				t.Errorf("%s, a room of %q, comes to import %s, of %q (%s)", dir,
					floors[number].says, own, floors[at].says, by)
			default:
				below++
			}
		}
	}
	if below < 100 {
		t.Errorf("%d imports of floors below: the test does not see them", below)
	}
	for _, f := range floors {
		for _, room := range f.rooms {
			if !slices.ContainsFunc(folders(all), func(dir string) bool { return within(dir, room) }) {
				t.Errorf("there is no room %s", room)
			}
		}
	}
}

// Whoever trains or carries sums for others does so without the simulator: besides its own
// packages, those that attack it and the commands import it.
func TestSimulatorIsApart(t *testing.T) {
	may := []string{"simulation", "attacks", "benchmarks", "cmd/hushsum", "internal/experiments",
		"service/cmd/hushsumd"}
	all, seen := sources(t), map[string]bool{}
	for _, dir := range folders(all) {
		for own, by := range reached(all, dir) {
			if !within(own, "simulation") {
				continue
			}
			i := slices.IndexFunc(may, func(m string) bool { return within(dir, m) })
			if i < 0 {
				t.Errorf("%s comes to import %s (%s)", dir, own, by)
			} else {
				seen[may[i]] = true
			}
		}
	}
	if !seen["simulation"] || !seen["cmd/hushsum"] {
		t.Errorf("the test sees imports by %v alone", seen)
	}
}

// Protocol has no floating-point number near it, and drive nothing of what declares a job.
func TestImports(t *testing.T) {
	may := map[string][]string{
		"protocol": {"keyexchange", "masking", "shamir"},
		"drive":    {"accounting", "keyexchange", "masking", "oneshot", "protocol"},
	}
	all := sources(t)
	for dir, allowed := range may {
		for own, by := range reached(all, dir) {
			if !internals(own) && !within(own, path.Join(dir, "internal")) &&
				!slices.Contains(allowed, own) {
				t.Errorf("%s comes to import %s (%s)", dir, own, by)
			}
		}
	}
}

// The picture in docs/packages.md is that of the floors.
func TestPicture(t *testing.T) {
	readme, err := os.ReadFile(path.Join(root, "docs/packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := picture(); !strings.Contains(string(readme), "```\n"+want+"```\n") {
		t.Errorf("docs/packages.md has another picture than:\n%s", want)
	}
}

// picture draws the floors as a house from the front, each with what it says to its right.
func picture() string {
	const width = 64 // of a floor, without its outer walls
	var b strings.Builder
	var above []int // columns of the walls between the rooms of the floor above
	for i, f := range floors {
		walls := wallsOf(len(f.rooms), width)
		b.WriteString(ceiling(width, above, walls, i == 0, false) + "\n")
		from := -1
		for j, room := range f.rooms {
			end := width
			if j < len(walls) {
				end = walls[j]
			}
			if room == "." {
				room = "hushsum, the root"
			}
			b.WriteString("│" + centred(room, end-from-1))
			from = end
		}
		b.WriteString("│  " + f.says + "\n")
		above = walls
	}
	return b.String() + ceiling(width, above, nil, false, true) + "\n"
}

// wallsOf returns the columns of the walls between rooms of like width.
func wallsOf(rooms, width int) (at []int) {
	for i := 1; i < rooms; i++ {
		at = append(at, i*(width+1)/rooms-1)
	}
	return at
}

// ceiling draws what lies between two floors, or above the first or below the last.
func ceiling(width int, above, below []int, roof, ground bool) string {
	line := []rune("├" + strings.Repeat("─", width) + "┤")
	switch {
	case roof:
		line[0], line[width+1] = '┌', '┐'
	case ground:
		line[0], line[width+1] = '└', '┘'
	}
	for i := range width {
		up, down := slices.Contains(above, i), slices.Contains(below, i)
		switch {
		case up && down:
			line[i+1] = '┼'
		case up:
			line[i+1] = '┴'
		case down:
			line[i+1] = '┬'
		}
	}
	return string(line)
}

// centred puts text into the middle of this many columns.
func centred(text string, columns int) string {
	free := columns - utf8.RuneCountInString(text)
	if free < 0 {
		panic("house: no place for " + text)
	}
	return strings.Repeat(" ", free/2) + text + strings.Repeat(" ", free-free/2)
}
