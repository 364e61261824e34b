package attacks_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/catalogue"
	"github.com/hushsum/hushsum/internal/suite"
)

// attackSeed is HUSHSUM_ATTACK_SEED, or 1.
func attackSeed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("HUSHSUM_ATTACK_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("HUSHSUM_ATTACK_SEED: %v", err)
	}
	return seed
}

// dataFolder is where the data sets are, or empty.
func dataFolder() string {
	dir := os.Getenv("HUSHSUM_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

// lengthy are the attacks that train many models, or draw as often, for five seconds or more.
var lengthy = []string{"Membership", "CollusionAdult", "Collusion", "AuditRound", "OneshotLattice",
	"CollusionLaw", "CollusionOblivious", "Coins"}

// asked reports whether go test was told which tests to run.
func asked() bool { return flag.Lookup("test.run").Value.String() != "" }

// TestAttack runs every attack of the catalogue that is not lengthy, logs its rows, and fails on
// each that is not in order. -run Attack/SplitView runs one of them. Rows of times are left to
// -timing.
func TestAttack(t *testing.T) { attack(t, false) }

// TestAttackLengthy runs the others: with -long, or where -run asks for them.
func TestAttackLengthy(t *testing.T) {
	if !asked() {
		suite.OnlyLong(t)
	}
	attack(t, true)
}

func attack(t *testing.T, long bool) {
	t.Helper()
	options := attacks.Options{Seed: attackSeed(t), Data: dataFolder()}
	if suite.Timing() {
		options.Now = time.Now
	}
	for _, attack := range catalogue.All() {
		if slices.Contains(lengthy, attack.Name) != long {
			continue
		}
		t.Run(attack.Name, func(t *testing.T) {
			start := time.Now()
			report, err := attack.Run(context.Background(), options)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Rows) == 0 {
				suite.OnlyTiming(t) // its rows are of times
				t.Fatal("the attack has no rows")
			}
			for _, row := range report.Rows {
				t.Logf("%-12s %-24s %-28s undefended %s  defended %s  %v",
					attack.Name, row.Case, row.Metric, row.Undefended, row.Defended, row.Verdict())
				if !row.Verdict().Good() {
					t.Errorf("%s, %s, %s: %v: undefended %+v, defended %+v", attack.Name,
						row.Case, row.Metric, row.Verdict(), row.Undefended, row.Defended)
				}
			}
			t.Logf("%s took %v", attack.Name, time.Since(start).Round(time.Millisecond))
		})
	}
}
