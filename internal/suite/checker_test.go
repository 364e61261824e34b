package suite

import "testing"

// The curves that tools/proof/check.py certifies with are upper bounds, and near.
func TestCurves(t *testing.T) {
	if out, err := proof(t, "-m", "unittest", "curves_test").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
