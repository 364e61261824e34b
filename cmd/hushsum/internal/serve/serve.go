// Package serve has the command sidecar, which serves a program in another language.
package serve

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/sidecar"
)

const sidecarAbout = `Usage: hushsum sidecar [flags]

Serves a program in another language: it answers calls that arrive as frames on
standard input, on standard output, or with --socket those on connections to a
Unix socket. docs/sidecar.md has the frames and the calls; the Python package
speaks them.

It exits when its standard input ends or, with --parent, within a second after
the program that started it, however that exits.
`

func sidecarManual() *cli.Manual {
	return &cli.Manual{
		About: sidecarAbout,
		Examples: []string{
			"hushsum sidecar --parent $$",
			"hushsum sidecar --socket ./hushsum.sock",
		},
	}
}

// parentCheck is the time between two checks for the parent.
const parentCheck = 200 * time.Millisecond

// Command returns the command sidecar.
func Command() cli.Command {
	return cli.Command{Name: "sidecar",
		About: "serve a program in another language, such as Python", Run: serve}
}

func serve(ctx context.Context, args []string, std cli.Streams) int {
	flags := flag.NewFlagSet("sidecar", flag.ContinueOnError)
	socket, shared, parent := "", -1, 0
	flags.StringVar(&socket, "socket", "", "`PATH` of a Unix socket to create and listen on")
	flags.Var((*cli.IntValue)(&shared), "shared",
		"`FD` descriptor of a memfd, sealed against shrinking, to pass arrays in")
	flags.Var((*cli.IntValue)(&parent), "parent", "`PID` process that started this one, to exit "+
		"with it")
	if code, ok := cli.ParseFlags(flags, sidecarManual(), args, std); !ok {
		return code
	}
	if parent != 0 {
		if os.Getppid() != parent {
			cli.Complain(std.Err, "hushsum sidecar", &cli.Problem{
				Cause: fmt.Sprintf("process %d did not start this one, or is gone", parent),
			})
			return cli.ExitFailure
		}
		go endWithParent(parent)
	}
	var memory sidecar.Memory
	var err error
	if shared >= 0 {
		if memory, err = sidecar.NewMemory(shared); err != nil {
			cli.Complain(std.Err, "hushsum sidecar", err)
			return cli.ExitFailure
		}
	}
	if socket == "" {
		// There is nothing to save, and reading does not end by itself.
		stop := context.AfterFunc(ctx, func() { os.Exit(cli.InterruptedBy(ctx)) })
		defer stop()
		err = sidecar.Serve(ctx, struct {
			io.Reader
			io.Writer
		}{os.Stdin, std.Out}, memory)
	} else {
		err = serveSocket(ctx, socket, memory)
	}
	if err != nil && ctx.Err() == nil {
		cli.Complain(std.Err, "hushsum sidecar", err)
		return cli.ExitFailure
	}
	return cli.ExitOK
}

// endWithParent ends the process once its parent is gone. There is nothing to save: keys are in its
// memory only. The kernel's signal at a parent's death does not help, since it comes when the
// thread of the parent ends that started the child.
func endWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(parentCheck)
	}
	os.Exit(cli.ExitOK)
}

// serveSocket listens at a Unix socket that only this user can open.
func serveSocket(ctx context.Context, path string, memory sidecar.Memory) error {
	listener, err := listenPrivately(path)
	if err != nil {
		return err
	}
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		go func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer conn.Close()
			_ = sidecar.Serve(ctx, conn, memory) // the program was told what was wrong
		}()
	}
}
