// Command hushsum runs private sums, and what is built on them, on one machine.
//
//	hushsum simulate     train a model over a private sum, and in the clear to compare
//	hushsum query        ask declared queries about many parties' rows
//	hushsum rows         say how a file of rows is read
//	hushsum account      compute how much privacy rounds of noisy sums spend
//	hushsum calibrate    find the noise, rounds or sampling for a privacy budget
//	hushsum attack       attack private sums, with and without each defence
//	hushsum experiment   rerun a table of the papers, in a clone
//	hushsum job          check a declared job, and list what there is to declare
//	hushsum identity     make or show the key of a party or coordinator
//	hushsum roster       make, change, show and check a list of parties
//	hushsum coordinate   run a job across machines
//	hushsum join         take part in a job across machines
//	hushsum member       help in a job as a member of its committee
//	hushsum verify       check evidence of cheating, receipts, and a record's entries
//	hushsum conform      test another implementation by the pages
//	hushsum completion   print what completes this command in a shell
//	hushsum man          print a manual page
//	hushsum sidecar      serve a program in another language
//
// Run hushsum help for a list of commands, hushsum help COMMAND for one of them,
// and hushsum --version for the version. It exits with 0 on success, 1 on failure,
// 2 when it was called wrongly, 130 when it was interrupted, and 143 when SIGTERM ended it; either
// signal leaves it time to keep what it has done, and a second one does not.
package main

import (
	"context"
	"os"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/account"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/ask"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/attack"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/completion"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/declare"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/describe"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/experiment"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/operate"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/people"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/serve"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/simulate"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/twin"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/verify"
)

// commands returns all commands in the order of help.
func commands() []cli.Command {
	return []cli.Command{
		simulate.Command(),
		ask.Command(),
		describe.Command(),
		account.Command(),
		account.CalibrateCommand(),
		attack.Command(),
		experiment.Command(),
		declare.Command(),
		people.Identity(),
		people.Roster(),
		operate.Coordinate(),
		operate.Join(),
		operate.Member(),
		verify.Command(),
		twin.Command(),
		completion.Command(commands),
		completion.ManCommand(commands),
		serve.Command(),
	}
}

func main() {
	program := &cli.Program{Commands: commands()}
	ctx, stop := cli.UntilSignal(context.Background())
	defer stop()
	os.Exit(program.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
