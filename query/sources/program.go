package sources

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
)

// programName is the name of the program that reads what is not CSV.
const programName = "hushsum-rows"

// build says how to get the program.
const build = "run 'go install github.com/hushsum/hushsum/tables/cmd/hushsum-rows' in a clone, " +
	"or with @latest behind it elsewhere, and see that PATH has the folder bin of 'go env GOPATH'"

// find returns the path of the program: next to the running one, or on PATH.
func find() (string, error) {
	if own, err := os.Executable(); err == nil {
		path, err := exec.LookPath(filepath.Join(filepath.Dir(own), programName))
		if err == nil {
			return path, nil
		}
	}
	return exec.LookPath(programName)
}

// mostWait is how long the program may take to end a statement properly before it is killed.
const mostWait = 5 * time.Second

// Program is the [Reader] of a [Source] that has none: it starts hushsum-rows, found next to the
// running program or on PATH. The request and the rows pass by the program's standard input and
// output, and no argument holds any part of them. The program has this process's environment, and
// so a password that is there. It ends when its standard input is closed, which stays open until
// the rows are here: the program does not outlive this process, whatever ends that.
func Program(ctx context.Context, r Request, read func(query.Table) error) error {
	wrong := func(advice, reason string, a ...any) error {
		return fault.At(r.Name, fault.New(ErrSource, advice, reason, a...), "")
	}
	path, err := find()
	if err != nil {
		return wrong(build, "%s is read by the program %s, which is neither next to this one nor on "+
			"PATH", r.Form, programName)
	}
	c := exec.CommandContext(ctx, path)
	c.Stderr, c.WaitDelay = os.Stderr, mostWait
	in, err := c.StdinPipe()
	if err != nil {
		return wrong("", "%v", err)
	}
	c.Cancel = in.Close
	out, err := c.StdoutPipe()
	if err != nil {
		return wrong("", "%v", err)
	}
	if err := c.Start(); err != nil && ctx.Err() == nil {
		return wrong("", "%v", err)
	} else if err != nil {
		return ended(r.Name, ctx)
	}
	_, _ = in.Write(appendRequest(nil, &r)) // to a program that has ended, as its answer tells
	err = readAnswer(out, read)
	out.Close() // so that a program that has more rows ends
	in.Close()
	exit := c.Wait()
	switch {
	case ctx.Err() != nil:
		return ended(r.Name, ctx)
	case errors.Is(err, errFrames):
		return wrong(build, "%s is no %s of this release", path, programName)
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil && exit != nil:
		return wrong("its own message, if there is one, is above",
			"%s ended before its rows did: %v", path, c.ProcessState)
	}
	return err
}

// ended is the error of a context that has ended.
func ended(name string, ctx context.Context) error {
	err := ctx.Err()
	return &fault.Error{Kind: ErrSource, Reason: name + ": " + err.Error(), Err: err}
}

// readAnswer reads an answer, and calls read with the table. It fails with [io.ErrUnexpectedEOF] or
// errFrames unless the answer is whole and nothing comes after its end.
func readAnswer(from io.Reader, read func(query.Table) error) error {
	f := &frames{Reader: bufio.NewReaderSize(from, 1<<16)}
	f.greet()
	switch part := f.byte(); {
	case f.err != nil:
		return f.err
	case part == partFault, part == partRows:
		return f.ended(f.fault(part))
	case part != partTable:
		return errFrames
	}
	t := query.Table{Name: f.text(), Columns: f.texts()}
	if f.err != nil {
		return f.err
	}
	t.Rows = func(yield func([]any, error) bool) {
		if err := f.rows(len(t.Columns), yield); err != nil {
			yield(nil, err)
		}
	}
	return read(t)
}

// rows yields the rows of an answer.
func (f *frames) rows(columns int, yield func([]any, error) bool) error {
	row := make([]any, columns)
	for n := uint64(0); ; n++ {
		switch part := f.byte(); {
		case f.err != nil:
			return f.err
		case part == partFault, part == partRows:
			return f.ended(f.fault(part))
		case part == partEnd && f.uvarint() == n:
			return f.ended(nil)
		case part != partRow:
			f.fail(errFrames)
		}
		for i := range row {
			row[i] = f.value()
		}
		if f.err != nil {
			return f.err
		}
		if !yield(row, nil) {
			return nil
		}
	}
}

// ended returns an error that was read, or what is wrong with it or after it.
func (f *frames) ended(err error) error {
	if f.err != nil {
		return f.err
	}
	if _, more := f.ReadByte(); !errors.Is(more, io.EOF) {
		return errFrames
	}
	return err
}

// WriteAnswer is the program: it reads a request, and answers by a reader. It ends when its input
// does, whether or not all rows were sent.
func WriteAnswer(ctx context.Context, in io.Reader, out io.Writer, reader Reader) error {
	f := &frames{Reader: bufio.NewReader(in)}
	r := f.request()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, f.Reader)
		stop()
	}()
	to := &answer{Writer: bufio.NewWriterSize(out, 1<<16)}
	_, _ = to.WriteString(greeting) // an error of writing is that of Flush too
	err := f.err
	if err == nil {
		err = reader(ctx, r, to.table)
	}
	if err == nil {
		to.frame = binary.AppendUvarint(append(to.frame[:0], partEnd), to.rows)
	} else {
		to.frame = appendError(to.frame[:0], err)
	}
	_, _ = to.Write(to.frame)
	return errors.Join(err, to.Flush())
}

// answer writes the answer to a request.
type answer struct {
	*bufio.Writer
	frame []byte // the part to be written, whose memory the next one uses
	rows  uint64
}

// table writes a table without an end.
func (a *answer) table(t query.Table) error {
	a.frame = appendTexts(appendText(append(a.frame[:0], partTable), t.Name), t.Columns)
	if _, err := a.Write(a.frame); err != nil {
		return err
	}
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		a.rows++
		if len(row) != len(t.Columns) {
			return &query.RowsError{File: t.Name, Row: int(a.rows),
				Reason: fmt.Sprintf("it has %d values for %d columns", len(row), len(t.Columns))}
		}
		a.frame = append(a.frame[:0], partRow)
		for i, value := range row {
			if a.frame, err = appendValue(a.frame, value); err != nil {
				return &query.RowsError{File: t.Name, Row: int(a.rows), Column: t.Columns[i],
					Reason: err.Error()}
			}
		}
		if _, err := a.Write(a.frame); err != nil {
			return err
		}
	}
	return nil
}
