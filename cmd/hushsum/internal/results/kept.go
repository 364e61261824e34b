package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// Kept is a file from which a run of an experiment can continue: a line of JSON for each outcome,
// which is written as soon as it is known.
type Kept struct {
	file     *os.File
	outcomes map[string]json.RawMessage
}

type keptLine struct {
	Key     string          `json:"key"`
	Outcome json.RawMessage `json:"outcome"`
}

// OpenKept reads a file, which need not exist yet. A last line that is cut short, as a killed run
// leaves it, is removed; any other that is no outcome is an error.
func OpenKept(path string) (*Kept, error) {
	trouble := func(err error) error {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return &cli.Problem{Cause: fmt.Sprintf("--keep: cannot use %s: %v", path, err), Advice: "Name " +
			"a file that an earlier run wrote, or a new one.", Err: err}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, trouble(err)
	}
	k := &Kept{file: file, outcomes: map[string]json.RawMessage{}}
	lines, whole := bufio.NewReader(file), int64(0)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var line keptLine
		if err == nil {
			if err = json.Unmarshal(text, &line); err == nil &&
				(line.Key == "" || line.Outcome == nil) {
				err = errors.New("it was not written by a run with --keep")
			}
		}
		if err != nil {
			file.Close()
			return nil, trouble(fmt.Errorf("line %d: %w", number, err))
		}
		k.outcomes[line.Key] = line.Outcome
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

// Load implements experiments.Store.
func (k *Kept) Load(key string) ([]byte, bool) {
	outcome, ok := k.outcomes[key]
	return outcome, ok
}

// Save implements experiments.Store.
func (k *Kept) Save(key string, outcome []byte) error {
	text, err := json.Marshal(keptLine{key, outcome})
	if err != nil {
		return err
	}
	k.outcomes[key] = outcome
	if _, err := k.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	return nil
}

func (k *Kept) Close() { k.file.Close() }
