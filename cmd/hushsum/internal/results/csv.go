package results

import (
	"encoding/csv"
	"errors"
	"os"
)

// WriteCSV writes a table to a new file.
func WriteCSV(path string, records [][]string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return csv.NewWriter(file).WriteAll(records)
}
