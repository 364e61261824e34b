package attacks

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
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

// runAttack runs one attack of the catalogue and fails the test on every row that
// is not in order.
func runAttack(t *testing.T, name string) *Report {
	t.Helper()
	for _, a := range Catalogue() {
		if a.Name != name {
			continue
		}
		start := time.Now()
		report, err := a.Run(context.Background(), Options{Seed: attackSeed(t), Data: dataFolder(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Rows) == 0 {
			t.Fatal("the attack has no rows")
		}
		for _, r := range report.Rows {
			t.Logf("%-12s %-24s %-28s undefended %s  defended %s  %v", a.Name, r.Case, r.Metric,
				r.Undefended, r.Defended, r.Verdict())
			if !r.Verdict().Good() {
				t.Errorf("%s, %s, %s: %v: undefended %+v, defended %+v", a.Name, r.Case, r.Metric, r.Verdict(), r.Undefended, r.Defended)
			}
		}
		t.Logf("%s took %v", a.Name, time.Since(start).Round(time.Millisecond))
		return report
	}
	t.Fatalf("there is no attack %q", name)
	return nil
}
