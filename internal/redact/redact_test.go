package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oblivious"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/shamir"
)

// secret are the types that hold secrets.
var secret = []reflect.Type{
	reflect.TypeFor[keyexchange.Agreement](),
	reflect.TypeFor[keyexchange.Chain](),
	reflect.TypeFor[keyexchange.Channels](),
	reflect.TypeFor[keyexchange.DecapsulationKey](),
	reflect.TypeFor[keyexchange.MaskSeed](),
	reflect.TypeFor[keyexchange.PairSecret](),
	reflect.TypeFor[keyexchange.PrivateKey](),
	reflect.TypeFor[keyexchange.SealKey](),
	reflect.TypeFor[masking.Seed](),
	reflect.TypeFor[masking.Intake](),
	reflect.TypeFor[masking.Masks](),
	reflect.TypeFor[masking.Vector](),
	reflect.TypeFor[noise.Sampler](),
	reflect.TypeFor[noise.Source](),
	reflect.TypeFor[oblivious.Joint](),
	reflect.TypeFor[oblivious.Published](),
	reflect.TypeFor[oblivious.PublishedServer](),
	reflect.TypeFor[oblivious.PublishedView](),
	reflect.TypeFor[oblivious.Transfer](),
	reflect.TypeFor[oneshot.Member](),
	reflect.TypeFor[oneshot.Party](),
	reflect.TypeFor[oneshot.Server](),
	reflect.TypeFor[protocol.Client](),
	reflect.TypeFor[protocol.ClientSeries](),
	reflect.TypeFor[protocol.Server](),
	reflect.TypeFor[protocol.ServerSeries](),
	reflect.TypeFor[shamir.PackedShare](),
	reflect.TypeFor[shamir.Secret](),
	reflect.TypeFor[shamir.Share](),
}

// public are the exported types that hold none, by package: configurations, laws,
// errors, and what is sent in the open.
var public = map[string]string{
	"keyexchange": "EncapsulationKey Entry Nonce PublicKey Purpose Roster",
	"masking":     "Layout Segment",
	"noise":       "Exact Family Law Shares Sum Table",
	"oblivious":   "Candidates Claim Coins Config JointConfig Noise PeerError Sampling",
	"oneshot": "Config Envelope Evidence Figures KEM MemberError PartyError Promise " +
		"Terms",
	"protocol": "Adversary Carrier Config Envelope Local MissingError Params Party PartyError " +
		"Promise Recovery Sizes Step Submission Summer",
	"shamir": "Combiner IndexError Packing WrongSharesError",
}

// Every exported type is said to be secret or public, so that a new one cannot be
// forgotten.
func TestEveryTypeIsSorted(t *testing.T) {
	for name, types := range public {
		known := strings.Fields(types)
		for _, s := range secret {
			if path := s.PkgPath(); path[strings.LastIndexByte(path, '/')+1:] == name {
				known = append(known, s.Name())
			}
		}
		slices.Sort(known)
		for _, typ := range exported(t, filepath.Join("..", "..", name)) {
			if !slices.Contains(known, typ) {
				t.Errorf("%s.%s holds secrets or not: say which", name, typ)
			}
		}
	}
}

// exported returns the names of a package's exported types.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", dir, err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				names = append(names, spec.Name.Name)
			}
			_, function := n.(*ast.FuncDecl)
			return !function
		})
	}
	slices.Sort(names)
	return names
}

// marker fills secrets, and digits finds it in whatever base it is printed.
const marker = 0xa7

var digits = []string{"a7a7", "A7A7", "a7 a7", "A7 A7", "167 167", "167,167", "0xa7", "0xA7",
	"p6en"}

// Values whose every byte, exported or not, is the marker show none of it.
func TestSecretsAreRedacted(t *testing.T) {
	for _, typ := range secret {
		value := reflect.New(typ)
		fill(value.Elem(), 0)
		if !strings.Contains(fmt.Sprint(unguarded(value.Elem())), "167 167") {
			t.Errorf("%v: the marker would not be seen", typ)
		}
		for _, v := range []any{value.Interface(), value.Elem().Interface(),
			[]any{value.Elem().Interface()},
			map[string]any{"k": value.Interface()}, struct{ Field any }{value.Elem().Interface()}} {
			for form, shown := range shows(t, v) {
				if !strings.Contains(shown, "redacted") {
					t.Errorf("%v, %s: %.80s", typ, form, shown)
				}
				for _, d := range digits {
					if strings.Contains(shown, d) {
						t.Errorf("%v, %s: shows %.80s", typ, form, shown)
					}
				}
			}
		}
	}
}

// shows prints a value in every way that logs and errors do.
func shows(t *testing.T, v any) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	out["error"] = fmt.Errorf("it failed: %v", v).Error()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out["JSON"] = string(b)
	var text, structured bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&structured, nil)).Info("m", "v", v)
	out["slog text"], out["slog JSON"] = text.String(), structured.String()
	return out
}

// fill sets every byte that a value reaches, except through interfaces and functions.
func fill(v reflect.Value, depth int) {
	if depth > 6 {
		return
	}
	if !v.CanSet() && v.CanAddr() {
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	switch v.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(marker)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth+1)
		fill(v.Index(1), depth+1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	}
}

// unguarded returns the bytes that a value reaches as numbers.
func unguarded(v reflect.Value) []uint64 {
	var out []uint64
	var walk func(v reflect.Value, depth int)
	walk = func(v reflect.Value, depth int) {
		switch v.Kind() {
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
			out = append(out, v.Uint())
		case reflect.Array, reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), depth+1)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), depth+1)
			}
		case reflect.Pointer:
			if depth < 6 && !v.IsNil() {
				walk(v.Elem(), depth+1)
			}
		}
	}
	walk(v, 0)
	return out
}
