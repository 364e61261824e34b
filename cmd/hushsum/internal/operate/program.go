package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"time"

	"github.com/hushsum/hushsum/internal/children"
)

// program is a command line that is run once a round: it reads JSON from its standard input, and
// writes JSON to its standard output. Its standard error is shown.
type program struct {
	line   string
	limit  time.Duration // 0: none
	errors io.Writer
}

// errProgram: the program of a round failed.
var errProgram = errors.New("the program failed")

// run runs the program on an input.
func (p *program) run(ctx context.Context, input any) (c contribution, err error) {
	in, err := json.Marshal(input)
	if err != nil {
		return c, err
	}
	outer := ctx
	if p.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.limit)
		defer cancel()
	}
	shell, flag := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/C"
	}
	command := exec.CommandContext(ctx, shell, flag, p.line)
	command.Stdin, command.Stderr = bytes.NewReader(in), p.errors
	out := &bounded{most: mostBytes}
	command.Stdout = out
	command.WaitDelay = 5 * time.Second
	children.EndWith(command)
	if err := command.Run(); err != nil {
		switch {
		case outer.Err() != nil:
			return c, outer.Err()
		case ctx.Err() != nil:
			return c, fmt.Errorf("%w: it took longer than %v", errProgram, p.limit)
		}
		return c, fmt.Errorf("%w: %w", errProgram, err)
	}
	if c, err = parseJSON(out.Bytes()); err != nil {
		return c, fmt.Errorf("%w: its output is %w", errProgram, err)
	}
	return c, nil
}

// bounded is a buffer that takes at most a given number of bytes.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}
