package house

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// kept has the exported names that nothing in the checkout uses outside of their package, with why
// they stay, by "folder.Name" or "folder.Type.Method".
var kept = []struct{ why, names string }{
	{"a job of one's own has no file to keep its state in", ".MemoryStore"},
	{"a word of a file, of which others are used",
		"service/federation.Uniform"},
	{"why a job ended, as its status has it", "drive.BudgetSpent"},
	{"theorems, to compare the accountant's bounds with",
		"accounting.DefaultOrders accounting.DistributedGaussianRDP accounting.NewRDP " +
			"accounting.RDP.FixedSize accounting.RDP.Plus " +
			"accounting.RDP.Poisson accounting.SkellamRDP"},
	{"the order of statements, to combine figures of one's own", "accounting.Statement.Meet"},
	{"attacks over plain data, to be turned on other systems",
		"attacks/model.PrivateAUC attacks/model.Shadows " +
			"attacks/model.Shadows.LiRA attacks/model.Shadows.Regress " +
			"attacks/observation.Disaggregate"},
	{"a bound of what is accepted, which messages name",
		"job.MaxLength"},
	{"asked of a model by those who use it", "learning.Logistic.Predict learning.Matrix.Recall"},
	{"laws that sum up to others, one by one",
		"noise.FamilyPoisson noise.FamilyPolya noise.FamilyPolyaDifference noise.Poisson " +
			"noise.Polya"},
	{"steps of an exchange that programs carry themselves",
		"oblivious.PublishedServer.Relay"},
	{"what a session will take, to plan one",
		"simulation/cost.Measure"},
	{"read by the package's own tests, from outside of it",
		"service/door.OpenAPI service/door.Routes service/page.OpenAPI service/page.Refusals " +
			"service/page.Routes service/tensor.ParseNPZ"},
}

// expected are methods that others call through an interface of the standard library.
var expected = []string{"AppendText", "Error", "Format", "Is", "Len", "Less",
	"MarshalJSON", "MarshalText", "Pop", "Push", "Read", "String", "Swap", "UnmarshalJSON",
	"UnmarshalText", "Unwrap", "Write", "WriteTo"}

// An exported name of a library package is used outside of it, by an example of it, or by what of
// the package is: a type by a signature or a field, a constant by its type. Errors stay, since
// callers compare with them.
func TestSurface(t *testing.T) {
	all := sources(t)
	used, interfaces := usesOf(all), interfaceMethods(all)
	unused, seen := map[string]string{}, 0
	needed := map[string]map[string]bool{}
	for _, s := range all {
		if s.test() || !s.public() {
			continue
		}
		dir := s.dir()
		if needed[dir] == nil {
			needed[dir] = neededTypes(all, dir)
		}
		exported(s, func(name string, n ast.Node) {
			seen++
			receiver, method, isMethod := strings.Cut(name, ".")
			stays := strings.HasPrefix(name, "Err") || strings.HasSuffix(name, "Error") ||
				needed[dir][name] || used.names[dir+"."+name]
			if isMethod {
				stays = !token.IsExported(receiver) || slices.Contains(expected, method) ||
					interfaces[method] || used.selected(method, dir)
			}
			if !stays {
				unused[strings.TrimPrefix(dir, ".")+"."+name] = s.at(n)
			}
		})
	}
	if seen < 1000 {
		t.Fatalf("%d exported names: the test does not see them", seen)
	}
	for _, k := range kept {
		for name := range strings.FieldsSeq(k.names) {
			if unused[name] == "" {
				t.Errorf("%s is used by now, or gone: it needs no reason to stay", name)
			}
			delete(unused, name)
		}
	}
	for name, at := range unused {
		t.Errorf("%s: nothing uses %s outside of its package; see kept", at, name)
	}
}

// exported visits the exported names that a file declares at the top, constants of a named type
// apart, and the exported methods of its types.
func exported(s *source, visit func(name string, n ast.Node)) {
	for _, d := range s.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case !d.Name.IsExported():
			case d.Recv == nil:
				visit(d.Name.Name, d)
			default:
				visit(typeName(d.Recv.List[0].Type)+"."+d.Name.Name, d)
			}
		case *ast.GenDecl:
			typed := false
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						visit(spec.Name.Name, spec)
					}
				case *ast.ValueSpec:
					// In a group of constants those without a value are of the type before.
					typed = spec.Type != nil || typed && spec.Values == nil
					for _, name := range spec.Names {
						if name.IsExported() && !(d.Tok == token.CONST && typed) {
							visit(name.Name, name)
						}
					}
				}
			}
		}
	}
}

// uses lists what files select of other packages.
type uses struct {
	names   map[string]bool            // "folder.Name", of the project's packages
	methods map[string]map[string]bool // folders that select a method or field, by its name
}

// selected reports whether a folder other than the given one, or an example, selects a method.
func (u *uses) selected(method, dir string) bool {
	for from := range u.methods[method] {
		if from != dir {
			return true
		}
	}
	return false
}

func usesOf(all []*source) *uses {
	u := &uses{map[string]bool{}, map[string]map[string]bool{}}
	names := map[string]string{} // of packages, by folder
	for _, s := range all {
		if !s.test() {
			names[s.dir()] = s.syntax.Name.Name
		}
	}
	for _, s := range all {
		from := s.dir()
		if s.example() {
			from += " example"
		}
		imported := map[string]string{} // folders, by the name in the file
		for _, spec := range s.syntax.Imports {
			for _, dir := range s.owns() {
				if spec.Path.Value != `"`+path.Join(module, dir)+`"` {
					continue
				}
				name := names[dir]
				if spec.Name != nil {
					name = spec.Name.Name
				}
				imported[name] = dir
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			x, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := x.Sel.Name
			if of, ok := x.X.(*ast.Ident); ok && imported[of.Name] != "" {
				if dir := imported[of.Name]; dir != from {
					u.names[dir+"."+name] = true
				}
				return true
			}
			if u.methods[name] == nil {
				u.methods[name] = map[string]bool{}
			}
			u.methods[name][from] = true
			return true
		})
	}
	return u
}

// interfaceMethods returns the names of methods of the interfaces that the project declares.
func interfaceMethods(all []*source) map[string]bool {
	names := map[string]bool{}
	for _, s := range all {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					for _, name := range m.Names {
						names[name.Name] = true
					}
				}
			}
			return true
		})
	}
	return names
}

// neededTypes returns the names in exported signatures, types and variables of a package: whoever
// uses those has to write them.
func neededTypes(all []*source, dir string) map[string]bool {
	names := map[string]bool{}
	add := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Field:
				// A field that is not exported shows its type to nobody.
				return len(x.Names) == 0 ||
					slices.ContainsFunc(x.Names, func(i *ast.Ident) bool { return i.IsExported() })
			case *ast.Ident:
				names[x.Name] = true
			}
			return true
		})
	}
	for _, s := range all {
		if s.test() || s.dir() != dir {
			continue
		}
		for _, d := range s.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					for _, list := range []*ast.FieldList{d.Type.Params, d.Type.Results} {
						if list == nil {
							continue
						}
						for _, field := range list.List {
							add(field.Type)
						}
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						// Another name of a type needs nothing: it has the type's own name.
						if spec.Name.IsExported() && !spec.Assign.IsValid() {
							add(spec.Type)
						}
					case *ast.ValueSpec:
						if spec.Type != nil && spec.Names[0].IsExported() {
							add(spec.Type)
						}
					}
				}
			}
		}
	}
	return names
}
