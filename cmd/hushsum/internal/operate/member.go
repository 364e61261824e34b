package operate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
)

const memberAbout = `Usage: hushsum member FILE --identity FILE --server ADDRESS --coordinator KEY

Helps in a job whose parties send one message a round, as a member of its
committee: it makes a key for each round, signs once which parties are in the
sum, and sends the coordinator the sum of its parts of their keys. It sees
nothing that parties submit. ADDRESS is the coordinator's address for members.

It can be killed at any time: started again with the same command, it resumes
from its folder, which is for one member of one job.
`

// Member returns the command member.
func Member() cli.Command {
	return cli.Command{Name: "member", About: "help in a job as a member of its committee",
		Run: member}
}

func member(ctx context.Context, args []string, std cli.Streams) int {
	var s side
	var p party
	flags := flag.NewFlagSet("member", flag.ContinueOnError)
	s.flags(flags, "hushsum-member")
	p.flags(flags)
	spent := flags.Int("spent", 0, "`ROUNDS` in which to help no more, if the folder is lost for good")
	manual := &cli.Manual{
		Takes:  "It takes one FILE, and flags.",
		About:  memberAbout,
		Topics: []cli.Topic{cli.JSONHelp("With --json there is one object:\n  digest    of the job\n")},
		Codes:  codes,
		Examples: []string{
			"hushsum member job.toml --identity ada.pem --server 127.0.0.1:7434 \\",
			"  --coordinator coordinator.pem --folder ada",
		},
	}
	return s.command(ctx, flags, manual, args, std, p.wrong, func(ctx context.Context) error {
		o, err := s.settle()
		if err != nil {
			return err
		}
		if o.files.Committee == nil {
			return errors.New("the job's sums are pairwise, and have no committee")
		}
		if _, found := o.files.Committee.Index(o.identity.Public().(ed25519.PublicKey)); !found {
			return errors.New("this identity's key is not in the committee")
		}
		m := hushsum.Member{Job: o.Settled, Identity: o.identity, Store: o.store, Key: o.key,
			Counter: o.countedBy, Progress: s.partyProgress(std)}
		if *spent != 0 {
			m.Lost = &hushsum.Lost{Rounds: *spent}
		}
		if m.Dialer, err = p.dialer(o.identity); err != nil {
			return err
		}
		if err := m.Run(ctx); err != nil {
			return err
		}
		if s.json {
			digest := o.Digest()
			show.JSON(std, struct {
				Digest string `json:"digest"`
			}{fmt.Sprintf("%x", digest)})
			return nil
		}
		fmt.Fprintln(std.Out, "the job is done")
		return nil
	})
}
