package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A source of randomness is the parameter random, the field Random or random. Readers of
// data are parameters of functions that read, by their names.
func TestRandomReaders(t *testing.T) {
	reads := regexp.MustCompile(`^(\w*[a-z])?([rR]ead|[rR]eceive|[pP]arse|[wW]rite)`)
	// Streams of public randomness have a name for what they are, and say so.
	meaning := []string{"Schedule"}
	all := sources(t)
	functions(all, func(s *source, f *ast.FuncDecl, _ string) {
		if s.test() || reads.MatchString(f.Name.Name) {
			return
		}
		for _, p := range f.Type.Params.List {
			if !isReader(p.Type) {
				continue
			}
			for _, name := range p.Names {
				if name.Name != "random" {
					t.Errorf("%s: %s reads randomness from %s: call it random", s.at(p), f.Name.Name, name.Name)
				}
			}
		}
	})
	for _, s := range all {
		if s.test() {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			x, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range x.Fields.List {
				for _, name := range f.Names {
					known := strings.EqualFold(name.Name, "random") || slices.Contains(meaning, name.Name)
					if isReader(f.Type) && !known {
						t.Errorf("%s: a field reads from %s: call it random", s.at(f), name.Name)
					}
				}
			}
			return true
		})
	}
}

// What is drawn is Generated, what is made of given things is New, and what comes from
// outside is Parsed; encodings are those of package encoding.
func TestFunctionNames(t *testing.T) {
	other := regexp.MustCompile(`^(Random|Make|Create|Restore|Unpack|Serialize)[A-Z]`)
	parsers := map[string]bool{}
	all := sources(t)
	functions(all, func(s *source, f *ast.FuncDecl, receiver string) {
		if name, ok := strings.CutPrefix(f.Name.Name, "Parse"); ok && receiver == "" {
			parsers[s.dir()+"."+name] = true
		}
		if strings.HasPrefix(f.Name.Name, "Unmarshal") {
			parsers[s.dir()+"."+receiver] = true
		}
	})
	functions(all, func(s *source, f *ast.FuncDecl, receiver string) {
		name := f.Name.Name
		if s.test() || !s.public() || !ast.IsExported(name) ||
			receiver != "" && !ast.IsExported(receiver) {
			return
		}
		if other.MatchString(name) {
			t.Errorf("%s: %s: Generate what is drawn, New what is made, Parse what is read", s.at(f), name)
		}
		if receiver == "" {
			return
		}
		signature := signatureOf(f)
		switch name {
		case "Bytes", "Text", "Marshal", "Unmarshal":
			t.Errorf("%s: %s.%s: use AppendBinary or MarshalText", s.at(f), receiver, name)
		case "AppendBinary", "AppendText":
			if signature != "([]byte) ([]byte, error)" {
				t.Errorf("%s: %s.%s is %s", s.at(f), receiver, name, signature)
			}
			// A private key is read by ParseKey, next to ParsePublicKey.
			if !parsers[s.dir()+"."+receiver] &&
				!parsers[s.dir()+"."+strings.TrimPrefix(receiver, "Private")] {
				t.Errorf("%s: there is no Parse%s", s.at(f), receiver)
			}
		case "MarshalBinary", "MarshalText", "MarshalJSON":
			if signature != "() ([]byte, error)" {
				t.Errorf("%s: %s.%s is %s", s.at(f), receiver, name, signature)
			}
		}
	})
	if len(parsers) < 10 {
		t.Errorf("%d types are parsed: the test does not see them", len(parsers))
	}
}

// signatureOf writes the types of a function's parameters and results.
func signatureOf(f *ast.FuncDecl) string {
	list := func(fields *ast.FieldList) string {
		var types []string
		if fields != nil {
			for _, p := range fields.List {
				for range max(1, len(p.Names)) {
					types = append(types, typeText(p.Type))
				}
			}
		}
		return "(" + strings.Join(types, ", ") + ")"
	}
	return list(f.Type.Params) + " " + list(f.Type.Results)
}

func typeText(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.ArrayType:
		if x.Len == nil {
			return "[]" + typeText(x.Elt)
		}
	}
	return "?"
}

// No name hides a builtin one.
func TestBuiltins(t *testing.T) {
	builtins := []string{"any", "append", "cap", "clear", "close", "copy", "delete", "error",
		"false", "iota", "len", "make", "max", "min", "new", "nil", "panic", "print", "println",
		"recover", "string", "true", "byte", "rune", "int", "uint", "float64", "bool"}
	for _, s := range sources(t) {
		check := func(name *ast.Ident) {
			if name != nil && slices.Contains(builtins, name.Name) {
				t.Errorf("%s: %s hides the builtin", s.at(name), name.Name)
			}
		}
		fields := func(list *ast.FieldList) {
			if list == nil {
				return
			}
			for _, f := range list.List {
				for _, name := range f.Names {
					check(name)
				}
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.AssignStmt:
				for _, left := range x.Lhs {
					if name, ok := left.(*ast.Ident); ok && x.Tok == token.DEFINE {
						check(name)
					}
				}
			case *ast.RangeStmt:
				for _, e := range []ast.Expr{x.Key, x.Value} {
					if name, ok := e.(*ast.Ident); ok && x.Tok == token.DEFINE {
						check(name)
					}
				}
			case *ast.ValueSpec:
				for _, name := range x.Names {
					check(name)
				}
			case *ast.TypeSpec:
				check(x.Name)
			case *ast.FuncDecl:
				fields(x.Recv)
				if x.Recv == nil {
					check(x.Name)
				}
			case *ast.FuncType:
				fields(x.Params)
				fields(x.Results)
			}
			return true
		})
	}
}

// The methods of a type have one name for their receiver.
func TestReceivers(t *testing.T) {
	names := map[string]string{}
	functions(sources(t), func(s *source, f *ast.FuncDecl, receiver string) {
		if receiver == "" || len(f.Recv.List[0].Names) == 0 {
			return
		}
		kind, name := s.dir()+"."+s.syntax.Name.Name+"."+receiver, f.Recv.List[0].Names[0].Name
		if before, ok := names[kind]; ok && before != name {
			t.Errorf("%s: the receiver of %s.%s is %s, and %s elsewhere", s.at(f), receiver, f.Name.Name,
				name, before)
		}
		names[kind] = name
	})
	if len(names) < 100 {
		t.Errorf("%d types have methods: the test does not see them", len(names))
	}
}

// What others can see is documented.
func TestDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !s.public() {
			continue
		}
		for _, d := range s.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				receiver := ""
				if d.Recv != nil {
					receiver = typeName(d.Recv.List[0].Type)
				}
				seen := d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver))
				if seen && d.Doc == nil && !selfEvident(d) {
					t.Errorf("%s: %s has no comment", s.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					documented := d.Doc != nil
					switch x := spec.(type) {
					case *ast.TypeSpec:
						if x.Name.IsExported() && !documented && x.Doc == nil {
							t.Errorf("%s: %s has no comment", s.at(x), x.Name.Name)
						}
					case *ast.ValueSpec:
						documented = documented || x.Doc != nil || x.Comment != nil
						if x.Names[0].IsExported() && !documented {
							t.Errorf("%s: %s has no comment", s.at(x), x.Names[0].Name)
						}
					}
				}
			}
		}
	}
}

// selfEvident reports whether a method is one that every Go programmer knows.
func selfEvident(f *ast.FuncDecl) bool {
	known := []string{"Error", "String", "GoString", "Format", "LogValue", "MarshalJSON",
		"UnmarshalJSON"}
	return f.Recv != nil && slices.Contains(known, f.Name.Name)
}

// constructor matches the names of functions that make or restore a value.
var constructor = regexp.MustCompile(
	`^(New|Start|Open|Load|Generate|Parse|Dial|Listen|Read|Settle|Resume)([A-Z]|$)`)

// Constructors return no usable value with an error: a value is not returned with a call that may
// fail.
func TestConstructors(t *testing.T) {
	seen := 0
	functions(sources(t), func(s *source, f *ast.FuncDecl, _ string) {
		if s.test() || f.Body == nil || !constructor.MatchString(f.Name.Name) || !fails(f) {
			return
		}
		seen++
		ast.Inspect(f.Body, func(n ast.Node) bool {
			r, ok := n.(*ast.ReturnStmt)
			if !ok || len(r.Results) < 2 {
				_, inner := n.(*ast.FuncLit)
				return !inner
			}
			if _, isCall := r.Results[len(r.Results)-1].(*ast.CallExpr); !isCall {
				return true
			}
			switch x := r.Results[0].(type) {
			case *ast.BasicLit:
				return true
			case *ast.Ident:
				if x.Name == "nil" {
					return true
				}
			case *ast.CompositeLit:
				if len(x.Elts) == 0 {
					return true
				}
			}
			t.Errorf("%s: %s returns a value with what may be an error", s.at(r), f.Name.Name)
			return true
		})
	})
	if seen < 100 {
		t.Errorf("%d constructors: the test does not see them", seen)
	}
}

// fails reports whether the last result of a function is an error.
func fails(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	last := f.Type.Results.List[len(f.Type.Results.List)-1]
	name, ok := last.Type.(*ast.Ident)
	return ok && name.Name == "error"
}
