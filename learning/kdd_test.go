package learning

import (
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/realdata"
)

const kddLine = "0,tcp,http,SF,181,5450,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,8,8,0.00,0.00,0.00,0.00," +
	"1.00,0.00,0.00,9,9,1.00,0.00,0.11,0.00,0.00,0.00,0.00,0.00,normal."

func TestParseKDD(t *testing.T) {
	attack := strings.Replace(strings.Replace(kddLine, "normal.", "smurf.", 1), "tcp", "icmp", 1)
	text := kddLine + "\n" + attack + "\n" + kddLine + "\n"
	d, err := parseKDD(strings.NewReader(text), []bool{true, true, false})
	if err != nil {
		t.Fatal(err)
	}
	if d.Len() != 2 || d.Labels[0] != 0 || d.Labels[1] != 1 {
		t.Fatalf("%d rows, labels %v", d.Len(), d.Labels)
	}
	for i := range 2 {
		norm := 0.
		row := d.Row(i)
		for _, x := range row[:kddFeatures-1] {
			norm += x * x
		}
		if row[kddFeatures-1] != 1 || norm > 1+1e-12 || norm < 0.9 {
			t.Errorf("row %d: norm² %v, constant %v", i, norm, row[kddFeatures-1])
		}
	}
	// The first three columns are icmp, tcp and udp behind the duration.
	if d.Row(0)[2] == 0 || d.Row(0)[1] != 0 || d.Row(1)[1] == 0 {
		t.Errorf("protocols %v, %v", d.Row(0)[1:4], d.Row(1)[1:4])
	}
	if d.Row(0)[3+66+11+1] != d.Row(1)[3+66+11+1] || d.Row(0)[3+66+11+1] == 0 {
		t.Error("181 bytes are not there")
	}
	for _, broken := range []struct {
		text string
		err  error
	}{
		{"", ErrIncomplete},
		{kddLine + "\n" + kddLine + "\n" + kddLine + "\n" + kddLine + "\n", ErrMalformed},
		{strings.Replace(kddLine, "tcp", "tcq", 1), ErrMalformed},
		{strings.Replace(kddLine, "181", "-181", 1), ErrMalformed},
		{strings.Replace(kddLine, "181", "NaN", 1), ErrMalformed},
		{strings.Replace(kddLine, "181,", "", 1), ErrMalformed},
		{strings.TrimSuffix(kddLine, "."), ErrMalformed},
	} {
		if _, err := parseKDD(strings.NewReader(broken.text), make([]bool, 3)); !errors.Is(err,
			broken.err) {
			t.Errorf("%.60q: %v, want %v", broken.text, err, broken.err)
		}
	}
}

func TestReadKDDCup99(t *testing.T) {
	dir := realdata.Dir(t, "kddcup99")
	if _, err := ReadKDDCup99(dir, kddRows+1, 0); !errors.Is(err, ErrTooFewRows) {
		t.Errorf("too many rows: %v", err)
	}
	if testing.Short() {
		t.Skip("the file has half a million rows")
	}
	d, err := ReadKDDCup99(dir, 5000, 1)
	if err != nil {
		t.Fatal(err)
	}
	attacks := 0
	for _, y := range d.Labels {
		attacks += y
	}
	// 396,743 of 494,021 are attacks: 4,015 of 5,000, give or take six standard deviations.
	if d.Len() != 5000 || d.Features != 119 || attacks < 4015-170 || attacks > 4015+170 {
		t.Errorf("%d rows of %d features, %d attacks", d.Len(), d.Features, attacks)
	}
}
