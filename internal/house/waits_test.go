package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// waiting says why a test of the default suite waits for a clock in real time, by the function
// that does, or by package.
var waiting = map[string]string{
	"service/node":    "processes and their servers have clocks of their own",
	"service/harness": "the same",

	"tables/tables_test.go:TestPostgresHearsTheEnd":  "a server of PostgreSQL",
	"cmd/hushsum/scriptcommands_test.go:until":       "a process",
	"service/cmd/hushsumd/query_test.go:TestQuery":   "a process",
	"service/cmd/hushsumd/query_test.go:awaitEnd":    "a process",
	"service/cmd/hushsumd/scripts_test.go:listens":   "a process",
	"service/door/body_test.go:TestManyBodies":       "sockets",
	"service/door/body_test.go:TestManyMessages":     "the record is a server of NATS",
	"service/door/door_test.go:FuzzDoor":             "the record is a server of NATS",
	"service/door/door_test.go:eventually":           "sockets",
	"service/door/patience_test.go:TestPatienceEnds": "deadlines of sockets",
	"service/page/browser_test.go:TestAccessible":    "a browser",
	"service/party/instant_test.go:slow.Read":        "the party asks through a socket",
	"service/party/turn_test.go:TestNothingAtOnce":   "the party asks through a socket",
	"service/record/copies_test.go:TestHeardBetween": "a server of NATS carries what nodes tell",
	"service/record/copies_test.go:TestToldToOthers": "a server of NATS carries what nodes tell",
	"service/record/record_test.go:" +
		"TestOlderObjectKeepsNothing": "a server of NATS, which frees its files after a while",
	"service/runner/runner_test.go:TestConfirm":        "the record is a server of NATS",
	"service/runner/units_test.go:TestStatusOfRound":   "the record is a server of NATS",
	"simulation/simulation_test.go:TestRunIsCancelled": "it cancels a computation",
	"link/crowd_test.go:full":                          "sockets",
	"link/crowd_test.go:holder":                        "sockets",
	"link/crowd_test.go:strangers":                     "sockets",
	"link/listener_test.go:TestUnknownKey":             "a wait at a socket, which ends",
	"link/listener_test.go:world.await":                "sockets",
	"link/tcp_test.go:TestTCP":                         "a wait at a socket, which ends",
}

// Tests of the default suite compute and do not wait: where code under test takes its time, they
// run in virtual time, within synctest.Test. Functions that wait in real time are listed with a
// reason.
func TestWaits(t *testing.T) {
	packages := map[string][]*source{}
	for _, s := range sources(t) {
		if s.test() {
			key := s.dir() + " " + s.syntax.Name.Name
			packages[key] = append(packages[key], s)
		}
	}
	if len(packages) < 80 {
		t.Errorf("%d packages with tests: the test does not see them", len(packages))
	}
	needed, bubbles := map[string]bool{}, 0
	for _, files := range packages {
		d := declare(files)
		bubbles += len(d.bubbles)
		for name, at := range d.waits() {
			place := d.of[name].path + ":" + name
			switch {
			case waiting[place] != "":
				needed[place] = true
			case waiting[path.Dir(place)] != "":
				needed[path.Dir(place)] = true
			default:
				t.Errorf("%s: %s waits for a clock: run it within synctest.Test, or list it with a reason",
					d.of[name].at(at), name)
			}
		}
	}
	if bubbles < 20 {
		t.Errorf("%d calls of synctest.Test: the test does not see them", bubbles)
	}
	for place := range waiting {
		if !needed[place] {
			t.Errorf("%s does not wait any more: remove it from the list", place)
		}
	}
}

// The test finds what it is for.
func TestWaitsFound(t *testing.T) {
	const head = "package p\n"
	for text, want := range map[string]string{
		"func TestA(t *testing.T) { time.Sleep(d) }":                                        "TestA",
		"func ExampleA() { <-time.After(d) }":                                               "ExampleA",
		"func FuzzA(f *testing.F) { for range time.Tick(d) { } }":                           "FuzzA",
		"func TestA(t *testing.T) { x := time.NewTimer(d); <-x.C }":                         "TestA",
		"func TestA(t *testing.T) { x := time.NewTicker(d); <-x.C }":                        "TestA",
		"func TestA(t *testing.T) { context.WithTimeout(ctx, 20*time.Millisecond) }":        "TestA",
		"func TestA(t *testing.T) { context.WithTimeout(ctx, time.Minute) }":                "",
		"func TestA(t *testing.T) { context.WithTimeout(ctx, limit) }":                      "",
		"func TestA(t *testing.T) { select { case <-c: case <-time.After(time.Hour): } }":   "",
		"func TestA(t *testing.T) { select { case <-c: case <-time.After(limit): } }":       "TestA",
		"func TestA(t *testing.T) { synctest.Test(t, func(*testing.T) { time.Sleep(d) }) }": "",
		"func TestA(t *testing.T) { suite.OnlyLong(t); time.Sleep(d) }":                     "",
		"func TestMain(m *testing.M) { time.Sleep(d) }":                                     "",
		"func BenchmarkA(b *testing.B) { time.Sleep(d) }":                                   "",
		// Through a helper, in a bubble and outside.
		"func TestA(t *testing.T) { a() }\nfunc a() { time.Sleep(d) }":                                   "a",
		"func TestA(t *testing.T) { synctest.Test(t, a) }\nfunc a(t *testing.T) { time.Sleep(d) }":       "",
		"func TestA(t *testing.T) { synctest.Test(t, a); a(t) }\nfunc a(t *testing.T) { time.Sleep(d) }": "a",
		// Through a method of a type that is mentioned outside of a bubble, or only within.
		"func TestA(t *testing.T) { use(new(a)) }\ntype a int\nfunc (*a) Save() { time.Sleep(d) }": "a.Save",
		"func TestA(t *testing.T) { synctest.Test(t, func(*testing.T) { use(new(a)) }) }\n" +
			"type a int\nfunc (*a) Save() { time.Sleep(d) }": "",
		// Through a variable.
		"func TestA(t *testing.T) { a() }\nvar a = func() { time.Sleep(d) }": "a",
		// A helper that runs what it is given in a bubble, and one that does not.
		"func TestA(t *testing.T) { a(t, func() { time.Sleep(d) }) }\n" +
			"func a(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }": "",
		"func TestA(t *testing.T) { a(t, func() { time.Sleep(d) }) }\n" +
			"func a(t *testing.T, f func()) { f(); synctest.Test(t, func(*testing.T) { f() }) }": "TestA",
	} {
		fileset := token.NewFileSet()
		file, err := parser.ParseFile(fileset, "", head+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := declare([]*source{{"a_test.go", text, file, fileset}}).waits()
		if got := strings.Join(slices.Sorted(maps.Keys(found)), " "); got != want {
			t.Errorf("%s\nfound %q, want %q", text, got, want)
		}
	}
}

// declarations are those of one package's tests, by name: "f", or "T.m" of a method.
type declarations struct {
	nodes   map[string]ast.Node
	of      map[string]*source
	methods map[string][]string // by type
	bubbles []ast.Node          // calls of synctest.Test
	hosts   map[string]bool     // functions that run what they are given in a bubble alone
}

func declare(files []*source) *declarations {
	d := &declarations{
		nodes:   map[string]ast.Node{},
		of:      map[string]*source{},
		methods: map[string][]string{},
		hosts:   map[string]bool{},
	}
	add := func(s *source, name string, n ast.Node) { d.nodes[name], d.of[name] = n, s }
	for _, s := range files {
		for _, one := range s.syntax.Decls {
			switch x := one.(type) {
			case *ast.FuncDecl:
				name := x.Name.Name
				if x.Recv != nil {
					of := typeName(x.Recv.List[0].Type)
					name = of + "." + name
					d.methods[of] = append(d.methods[of], name)
				}
				add(s, name, x)
			case *ast.GenDecl:
				for _, spec := range x.Specs {
					switch x := spec.(type) {
					case *ast.TypeSpec:
						add(s, x.Name.Name, x)
					case *ast.ValueSpec:
						for _, name := range x.Names {
							add(s, name.Name, x)
						}
					}
				}
			}
		}
	}
	for name, n := range d.nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && called(call) == "synctest.Test" {
				d.bubbles = append(d.bubbles, n)
			}
			return true
		})
		if f, ok := n.(*ast.FuncDecl); ok {
			d.hosts[name] = d.host(f)
		}
	}
	return d
}

// host reports whether a function calls a parameter in a bubble, and none outside.
func (d *declarations) host(f *ast.FuncDecl) bool {
	given := map[string]bool{}
	for _, p := range f.Type.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			for _, name := range p.Names {
				given[name.Name] = true
			}
		}
	}
	if f.Body == nil || len(given) == 0 {
		return false
	}
	uses := func(walk func(ast.Node, func(ast.Node))) (n int) {
		walk(f.Body, func(at ast.Node) {
			if x, ok := at.(*ast.Ident); ok && given[x.Name] {
				n++
			}
		})
		return n
	}
	all := uses(func(n ast.Node, visit func(ast.Node)) {
		ast.Inspect(n, func(n ast.Node) bool { visit(n); return true })
	})
	return all > 0 && uses(d.outside) == 0
}

// outside visits what is not in a bubble.
func (d *declarations) outside(n ast.Node, visit func(ast.Node)) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			visit(n)
			return true
		}
		if called(call) == "synctest.Test" {
			return false
		}
		visit(n)
		if f, ok := call.Fun.(*ast.Ident); ok && d.hosts[f.Name] {
			visit(f)
			for _, argument := range call.Args {
				if _, function := argument.(*ast.FuncLit); !function {
					d.outside(argument, visit)
				}
			}
			return false
		}
		return true
	})
}

// chosen matches a call that keeps a test from the default suite.
var chosen = regexp.MustCompile(`^suite\.Only(Timing|Long|Longest)$`)

// waits returns what waits for a clock among what tests of the default suite reach outside of
// bubbles, with the first place. Every name that is mentioned counts as reached, and with a type
// all of its methods.
func (d *declarations) waits() map[string]ast.Node {
	found, reached := map[string]ast.Node{}, map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		n := d.nodes[name]
		if n == nil || reached[name] {
			return
		}
		reached[name] = true
		for _, method := range d.methods[name] {
			reach(method)
		}
		d.outside(n, func(n ast.Node) {
			switch x := n.(type) {
			case *ast.Ident:
				reach(x.Name)
			case *ast.CallExpr:
				if found[name] == nil && waits(x) {
					found[name] = x
				}
			}
		})
	}
	for name, n := range d.nodes {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !entry.MatchString(name) || name == "TestMain" {
			continue
		}
		only := false
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			only = only || ok && chosen.MatchString(called(call))
			return !only
		})
		if !only {
			reach(name)
		}
	}
	return found
}

// patience is the time from which on an end is not meant to come: it ends a test that stands
// still.
const patience = 5 * time.Second

// waits reports whether a call waits, or makes something to wait for.
func waits(call *ast.CallExpr) bool {
	switch called(call) {
	case "time.Sleep", "time.Tick", "time.NewTimer", "time.NewTicker":
		return true
	case "time.After":
		long, known := duration(call.Args[0])
		return !known || long < patience
	case "context.WithTimeout":
		long, known := duration(call.Args[1])
		return known && long < patience
	}
	return false
}

// duration works out an expression like 20*time.Millisecond.
func duration(e ast.Expr) (d time.Duration, known bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(x.Value, 0, 64)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		unit, known := map[string]time.Duration{
			"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
			"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
		}[x.Sel.Name]
		return unit, known
	case *ast.BinaryExpr:
		a, one := duration(x.X)
		b, other := duration(x.Y)
		switch {
		case !one || !other:
		case x.Op == token.MUL:
			return a * b, true
		case x.Op == token.QUO && b != 0:
			return a / b, true
		}
	}
	return 0, false
}
