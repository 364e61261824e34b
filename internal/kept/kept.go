// Package kept keeps the outcomes of a long run in a file, from which the same run can continue.
package kept

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// File is a file from which a run can continue: a line of JSON for each outcome, which is written
// as soon as it is known.
type File struct {
	file     *os.File
	outcomes map[string]json.RawMessage
}

type line struct {
	Key     string          `json:"key"`
	Outcome json.RawMessage `json:"outcome"`
}

// Open reads a file, which need not exist yet. A last line that is cut short, as a killed run
// leaves it, is removed; any other that is no outcome is an error.
func Open(path string) (*File, error) {
	trouble := func(err error) error {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return fmt.Errorf("cannot use %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, trouble(err)
	}
	k := &File{file: file, outcomes: map[string]json.RawMessage{}}
	lines, whole := bufio.NewReader(file), int64(0)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var read line
		if err == nil {
			if err = json.Unmarshal(text, &read); err == nil &&
				(read.Key == "" || read.Outcome == nil) {
				err = errors.New("no run that can continue wrote it")
			}
		}
		if err != nil {
			file.Close()
			return nil, trouble(fmt.Errorf("line %d: %w", number, err))
		}
		k.outcomes[read.Key] = read.Outcome
		whole += int64(len(text))
	}
	if err := file.Truncate(whole); err != nil {
		file.Close()
		return nil, trouble(err)
	}
	if _, err := file.Seek(whole, io.SeekStart); err != nil {
		file.Close()
		return nil, trouble(err)
	}
	return k, nil
}

// Load returns what was kept under a key, and whether anything was.
func (k *File) Load(key string) ([]byte, bool) {
	outcome, ok := k.outcomes[key]
	return outcome, ok
}

// Save keeps an outcome under a key.
func (k *File) Save(key string, outcome []byte) error {
	text, err := json.Marshal(line{key, outcome})
	if err != nil {
		return err
	}
	k.outcomes[key] = outcome
	if _, err := k.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("keeping an outcome: %w", err)
	}
	return nil
}

// Close closes the file.
func (k *File) Close() { k.file.Close() }
