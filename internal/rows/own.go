package rows

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// mostRows bounds the bytes of a party's file of rows.
const mostRows = 8 << 30

// ReadOwn reads a party's rows for a declared training: a CSV file of numbers without a
// header, the last of each line the class, from 0. With persons each line begins with
// the name of the person that it belongs to.
func ReadOwn(name string, want job.Model, persons bool) (*learning.Dataset, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--rows: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > mostRows {
		return nil, fmt.Errorf("--rows %s: it has %d bytes, at most %d are read", name, info.Size(),
			int64(mostRows))
	}
	r := csv.NewReader(io.LimitReader(file, mostRows))
	first, form := 0, ""
	known := make(map[string]int)
	if persons {
		first, form = 1, "whose a row is, "
	}
	r.ReuseRecord, r.FieldsPerRecord = true, first+want.Features+1
	d := &learning.Dataset{Features: want.Features}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var parse *csv.ParseError
		switch {
		case errors.As(err, &parse) && errors.Is(err, csv.ErrFieldCount):
			return nil, fmt.Errorf("--rows %s: line %d: %d numbers separated by commas; the job's rows "+
				"have %s%d features, followed by the class", name, parse.Line, len(record), form,
				want.Features)
		case err != nil:
			return nil, fmt.Errorf("--rows %s: %w", name, err) // which names the line
		}
		line, _ := r.FieldPos(0)
		fail := func(format string, a ...any) (*learning.Dataset, error) {
			return nil, fmt.Errorf("--rows %s: line %d: %s", name, line, fmt.Sprintf(format, a...))
		}
		if persons {
			who, ok := known[record[0]]
			if !ok {
				who = len(known)
				known[record[0]] = who
			}
			d.Writers = append(d.Writers, who)
			record = record[1:]
		}
		for k, text := range record[:want.Features] {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				hint := ""
				if line == 1 {
					hint = "; leave out the header"
				}
				return fail("column %d is not a finite number%s", first+k+1, hint)
			}
			d.X = append(d.X, x)
		}
		label, err := strconv.Atoi(record[want.Features])
		if err != nil || label < 0 || label >= want.Classes {
			return fail("the class is not 0 to %d", want.Classes-1)
		}
		d.Labels = append(d.Labels, label)
	}
	if d.Len() == 0 {
		return nil, fmt.Errorf("--rows %s: there are no rows", name)
	}
	return d, nil
}
