package house

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bare lists the files, apart from tests, that take an ε out of its accounting.Claim by Bare, and
// why. What they have then is a number without a statement.
var bare = []struct{ why, files string }{
	{"a gauge of monitors, of what the federation's status says", "service/page/metrics.go"},
	{"the chart of a simulation", "simulation/personalround.go"},
	{"the bound that an attack tries to break", "attacks/epsilon/mechanisms.go " +
		"attacks/epsilon/round.go attacks/model/membership.go " +
		"attacks/observation/query_differencing.go"},
	{"a budget that just fits, for jobs of chance", "drive/jobtest/world.go drive/partytest/world.go"},
	{"whether the accountant can have scanned a law", "job/derive.go job/deriverun.go"},
	{"search for the noise of a budget", "privacy/calibrate.go"},
	{"the budget of queries with all before them", "service/federation/batch.go"},
	{"JSON for scripts, next to the claim", "cmd/hushsum/internal/simulate/json.go"},
}

// compared lists what may be compared with the number of a claim, by file: not another claim's.
var compared = map[string]string{
	"privacy/calibrate.go": "the budget that the search is for, in its ledger",
	"job/derive.go":        "a constant",
	"job/deriverun.go":     "a constant",
}

func callsBare(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Bare" && len(call.Args) == 0
}

// An ε that has lost its statement is for people's eyes and for searches, and is not compared: two
// ε meet in Claim.Within alone.
func TestBareClaims(t *testing.T) {
	why := map[string]bool{}
	for _, b := range bare {
		for file := range strings.FieldsSeq(b.files) {
			why[file] = false
		}
	}
	isBare := func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && callsBare(call) {
				found = true
			}
			return !found
		})
		return found
	}
	order := []token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}
	for _, s := range sources(t) {
		if s.test() || s.dir() == "accounting" || strings.HasPrefix(s.path, "lab/") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if slices.Contains(order, n.Op) && (isBare(n.X) || isBare(n.Y)) && compared[s.path] == "" {
					t.Errorf("%s: an ε without its statement is compared; use Claim.Within", s.at(n))
				}
			case *ast.CallExpr:
				if callsBare(n) {
					if _, known := why[s.path]; !known {
						t.Errorf("%s: an ε without its statement; use Claim.Within, or say why in bare",
							s.at(n))
					}
					why[s.path] = true
				}
				f, ok := n.Fun.(*ast.Ident)
				if ok && (f.Name == "max" || f.Name == "min") && slices.ContainsFunc(n.Args, isBare) {
					t.Errorf("%s: an ε without its statement is compared; use Ledger.Most", s.at(n))
				}
			}
			return true
		})
	}
	for file, used := range why {
		if !used {
			t.Errorf("%s has no ε without its statement any more: it leaves the list", file)
		}
	}
}

// sensitivities lists the files, apart from tests, that say how far a unit moves a sum, and by what
// proof. All others pass on what these say.
var sensitivities = map[string]string{
	"aggregation/encoder.go":       "a clipped vector, after rounding",
	"aggregation/signs.go":         "signs and votes: one a coordinate",
	"privacy/band.go":              "the parts of a band, over all its rounds",
	"privacy/spending/spending.go": "a calculator's, from what its user says",
	"drive/jobtest/world.go":       "jobs of chance, whose vectors are no longer than that",
}

// An ε rests on a bound of what a unit adds: who encodes the vector proves it, and nobody else
// writes one down.
func TestBoundsOfUnits(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() || s.dir() == "accounting" || strings.HasPrefix(s.path, "lab/") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			made, ok := n.(*ast.CompositeLit)
			if !ok || len(made.Elts) == 0 {
				return true
			}
			if of, ok := made.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Sensitivity" {
				if used[s.path] = true; sensitivities[s.path] == "" {
					t.Errorf("%s: a bound that no encoder has proved", s.at(n))
				}
			}
			return true
		})
	}
	for file := range sensitivities {
		if !used[file] {
			t.Errorf("%s makes no bound any more: it leaves the list", file)
		}
	}
}

// rounds lists the files, apart from tests, that round an ε themselves, and why.
var rounds = map[string]string{
	"attacks/collusion/law.go":          "what a paper claims of its law, in closed form",
	"internal/continuous/continuous.go": "a parameter of a law that is sampled",
}

var (
	// verb is one of a format, with digits or without.
	verb = regexp.MustCompile(`%[-+# 0]*[0-9*]*(?:\.([0-9*]+))?[a-zA-Z%]`)
	// before stands in front of the figure of an ε.
	before = regexp.MustCompile(`(?i)(?:epsilon|ε|ε shown, claim)(?: of| ≤| =| left:|,)? *$`)
	named  = regexp.MustCompile(`(?i)epsilon|\beps\b|Bare\(\)`)
	// elsewhere matches an ε that a template, a script or Python rounds.
	elsewhere = regexp.MustCompile(`(?i)\{\{[^}]*printf[^}]*epsilon[^}]*\}\}|epsilon[^"'\n]*\.to(?:Fixed|Prec)|` +
		`\{[^{}\n]*epsilon[^{}\n]*:[0-9]*\.[0-9]+[gfe]\}|(?:ceil|floor|round)\([^)\n]*epsilon`)
)

// Claim.String, Claim.Most and Claim.Least alone round an ε: up, or down if it is the least.
// A format such as %.3g rounds to the nearest, and below a bound there is none.
func TestRoundedClaims(t *testing.T) {
	used := map[string]bool{}
	bad := func(s *source, n ast.Node) {
		if used[s.path] = true; rounds[s.path] == "" {
			t.Errorf("%s: an ε is rounded here; use Claim.String, or Claim.Most", s.at(n))
		}
	}
	for _, s := range sources(t) {
		if s.test() || s.dir() == "accounting" || strings.HasPrefix(s.path, "lab/") {
			continue
		}
		of := func(e ast.Expr) string {
			return s.text[s.fileset.Position(e.Pos()).Offset:s.fileset.Position(e.End()).Offset]
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch name := of(call.Fun); {
			case name == "math.Ceil", name == "math.Floor", name == "math.Round",
				name == "strconv.FormatFloat":
				if named.MatchString(of(call.Args[0])) {
					bad(s, n)
				}
				return true
			}
			for i, a := range call.Args {
				format := literal(a)
				if !strings.Contains(format, "%") {
					continue
				}
				from, arg := 0, i
				for _, at := range verb.FindAllStringSubmatchIndex(format, -1) {
					text := format[from:at[0]]
					if from = at[1]; format[at[1]-1] == '%' {
						continue
					}
					arg++
					if at[2] >= 0 && arg < len(call.Args) && strings.ContainsRune("gfeG", rune(format[at[1]-1])) &&
						(before.MatchString(text) || named.MatchString(of(call.Args[arg]))) {
						bad(s, n)
					}
				}
				break
			}
			return true
		})
	}
	for file := range rounds {
		if !used[file] {
			t.Errorf("%s rounds no ε any more: it leaves the list", file)
		}
	}
	for _, pattern := range []string{"service/page/assets/*", "python/hushsum/*.py",
		"python/examples/*.py"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range elsewhere.FindAllString(string(text), -1) {
				t.Errorf("%s: %s: an ε is rounded here", file, found)
			}
		}
	}
}
