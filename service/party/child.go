package party

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/hushsum/hushsum/internal/children"
)

// child is a running command of [Gradients].
type child struct {
	in    io.WriteCloser
	out   io.Writer
	waits chan struct{} // has one when it has said that it is ready
	idle  bool          // it has, and was asked for nothing since
	stop  context.CancelFunc
	ended chan struct{} // closed when it has
	err   error         // why it has ended; read after ended is closed
	part  []byte        // of a line
}

// shellOf returns a command that the shell runs, with a folder for its files.
func shellOf(ctx context.Context, line, folder string) *exec.Cmd {
	shell, flag := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/C"
	}
	run := exec.CommandContext(ctx, shell, flag, line)
	run.Env = append(os.Environ(), "HUSHSUM_WORK="+folder)
	run.WaitDelay = 5 * time.Second
	children.EndWith(run)
	return run
}

// start starts the command. Where that fails, the child has ended.
func (g *Gradients) start() *child {
	ctx, stop := context.WithCancel(g.life)
	c := &child{out: g.out, waits: make(chan struct{}, 1), stop: stop, ended: make(chan struct{})}
	run := shellOf(ctx, g.line, g.folder)
	run.Stdout, run.Stderr = c, g.out
	if c.in, c.err = run.StdinPipe(); c.err == nil {
		c.err = run.Start()
	}
	if c.err != nil {
		close(c.ended)
		return c
	}
	go func() {
		defer close(c.ended)
		if c.err = run.Wait(); c.err == nil {
			c.err = errors.New("it has ended")
		}
	}()
	return c
}

// ask sends a line.
func (c *child) ask(line []byte) {
	select {
	case <-c.waits: // it said so twice
	default:
	}
	c.idle = false
	go c.in.Write(line) // a pipe may be full; if the command has ended, that is known
}

// longestLine is how much of a line is kept.
const longestLine = 4096

// Write takes what the command prints: lines that say that it is ready, and all else for its owner.
func (c *child) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		b = rest
		c.part = append(c.part, line...)
		if !whole && len(c.part) < longestLine {
			break
		}
		if whole && string(bytes.TrimSpace(c.part)) == "ready" {
			select {
			case c.waits <- struct{}{}:
			default:
			}
		} else if c.out != nil {
			if whole {
				c.part = append(c.part, '\n')
			}
			if _, err := c.out.Write(c.part); err != nil {
				return 0, err
			}
		}
		c.part = c.part[:0]
	}
	return n, nil
}
