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
	{[]string{"service", "sidecar", "attacks", "fuzz", "tables"},
		"many machines; other languages; attacks; databases"},
	{[]string{"simulation", "query"}, "many parties on one machine; queries"},
	{[]string{".", "training"}, "jobs in processes; training"},
	{[]string{"job", "host", "learning", "table"}, "declared; the loop; models, data; rows"},
	{[]string{"drive", "link"}, "decided; carried"},
	{[]string{"privacy", "oblivious", "audit"}, "noise and ε of what is released; ε tested"},
	{[]string{"aggregation", "protocol", "oneshot", "store"},
		"floats to integers; sums; what is saved"},
	{[]string{"accounting", "noise", "keyexchange", "masking", "shamir"},
		"ε; samplers; keys; masks; shares"},
}

// outside are folders next to the house: nothing of it imports them.
var outside = []string{"lab", "python", "tools"}

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

// No package imports one of its own floor or above.
func TestFloors(t *testing.T) {
	all := sources(t)
	for dir, owns := range importsOf(all) {
		if slices.ContainsFunc(outside, func(o string) bool { return within(dir, o) }) ||
			internals(dir) {
			continue
		}
		room, number := roomOf(dir)
		if room == "" {
			t.Errorf("%s is on no floor", dir)
			continue
		}
		for _, own := range owns {
			other, at := roomOf(own)
			switch {
			case slices.ContainsFunc(outside, func(o string) bool { return within(own, o) }):
				t.Errorf("%s imports %s, which is outside of the house", dir, own)
			case other != room && !internals(own) && at <= number:
				t.Errorf("%s, a room of %q, imports %s, of %q", dir, floors[number].says, own,
					floors[at].says)
			}
		}
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
	may := []string{"simulation", "attacks", "lab", "cmd/hushsum", "service/cmd/hushsumd"}
	seen := map[string]bool{}
	for dir, owns := range importsOf(sources(t)) {
		for _, own := range owns {
			if !within(own, "simulation") {
				continue
			}
			i := slices.IndexFunc(may, func(m string) bool { return within(dir, m) })
			if i < 0 {
				t.Errorf("%s imports %s", dir, own)
			} else {
				seen[may[i]] = true
			}
		}
	}
	if !seen["simulation"] || !seen["cmd/hushsum"] {
		t.Errorf("the test sees imports by %v alone", seen)
	}
}

// A hospital runs service/party, which has nothing of the server, not even through what it imports.
func TestPartyIsApart(t *testing.T) {
	server := []string{"door", "node", "page", "record", "runner"}
	imports := importsOf(sources(t))
	for _, name := range server {
		if imports["service/"+name] == nil {
			t.Errorf("there is no package service/%s", name)
		}
	}
	seen, next := map[string]bool{}, []string{"service/party"}
	for len(next) > 0 {
		dir := next[0]
		next = next[1:]
		for _, own := range imports[dir] {
			if name, is := strings.CutPrefix(own, "service/"); is && slices.Contains(server, name) {
				t.Errorf("service/party has %s, which %s imports", own, dir)
			}
			if !seen[own] {
				seen[own] = true
				next = append(next, own)
			}
		}
	}
	if !seen["service/exchange"] || !seen["masking"] {
		t.Errorf("the test sees imports of %d packages", len(seen))
	}
}

// Whoever carries sums in another way than the root does so without it.
func TestRootIsApart(t *testing.T) {
	may := []string{"cmd/hushsum", "examples", "query", "sidecar"}
	seen := map[string]bool{}
	for dir, owns := range importsOf(sources(t)) {
		if !slices.Contains(owns, ".") {
			continue
		}
		i := slices.IndexFunc(may, func(m string) bool { return within(dir, m) })
		if i < 0 {
			t.Errorf("%s imports the root", dir)
		} else {
			seen[may[i]] = true
		}
	}
	for _, m := range may {
		if !seen[m] {
			t.Errorf("%s no longer imports the root: it needs no leave to", m)
		}
	}
}

// Protocol has no floating-point number near it, drive nothing of what declares a job, and store
// nothing of what it keeps.
func TestImports(t *testing.T) {
	may := map[string][]string{
		"protocol": {"keyexchange", "masking", "shamir"},
		"drive":    {"accounting", "keyexchange", "masking", "oneshot", "protocol"},
		"store":    {"keyexchange"},
	}
	imports := importsOf(sources(t))
	for dir, allowed := range may {
		for _, own := range imports[dir] {
			if !internals(own) && !within(own, path.Join(dir, "internal")) &&
				!slices.Contains(allowed, own) {
				t.Errorf("%s imports %s", dir, own)
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
