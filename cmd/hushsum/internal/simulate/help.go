package simulate

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/learning"
)

const simulateAbout = `Usage: hushsum simulate [FILE] [flags]

Trains a model for many parties on this machine by federated averaging. In every
round, each party trains on its own rows, masks the result, and submits it; the
server sees nothing but the sum. The same training runs in the clear as well,
from the same seed, to show what privacy costs the model.

Parties may drop out of rounds (--drop), sums may take one message a party
(--protocol oneshot), noise may protect what sums reveal (--noise, --epsilon),
and other data, models and rules may replace the census and its averages. Ctrl-C
or SIGTERM ends the run early: it prints what was done, and with --out writes it
to a folder named incomplete inside that of --out. A sweep resumes from it when
the same command runs again with --out or --keep. A run without any sum exits
with code 1 and gives the reason on standard error.

With FILE it simulates a job as the file declares it, including latencies,
drop-outs and budgets, and without one its own job, which --print shows. Flags,
and --set for any field, override what a job says.
`

const simulateFiles = `FILE declares a job: who trains what, how sums are taken
and what noise they contain; - reads standard input. 'hushsum job fields' lists
all fields. Those under [world] are for a simulation only: data, places, links,
drop-outs.

With places, links, single parties, crowds or rows by round time is virtual:
messages of real sessions take the latencies of the world, and work takes the
time that the world gives, or that parties on separate machines would need. The
report then shows what accuracy, privacy and time the collaboration would give,
for each party and round. Noise is drawn from the world's seed, so that runs
repeat exactly: a simulated model protects nobody's rows and must not be
released.

For any job, --out writes a page with figures and tables, --sweep runs all
combinations of some values, and --seeds each of them with several seeds, for
the mean and the standard deviation: of accuracies as a table, with --json (keys
that end in _sd), on the page and in its table also of the others.

Without FILE the flags choose one of four jobs: federated averaging of a census,
the same with noise, a census with other models and rules, or images. --print
shows it, and the printed file gives the same result.
`

const simulateDropOuts = `With --drop, parties drop out of each round: before
they submit, before they sign who is left, or before they reveal the shares that
remove the masks from the sum. They come back for the next round. The sum, and
the training in the clear, is then over those that submitted. A round with too
few parties left is lost, and training continues with the old model. Without
recovery nobody may drop out. With --set world.fidelity=ring messages are lost
on their way instead, and whole rounds with --set world.lost_rounds=N.

With --protocol oneshot a party sends one message a round, whatever the number
of parties, and a committee of --members removes the keys from the sum; a sixth
of the members may collude with the server. Noise must then be
discrete-gaussian, and hides the parties' keys: privacy against the server is
computational. Drop-outs are parties that do not submit.

With --bounded each party proves that what it adds, with its noise, is at most
3.05 times as long as an honest vector with its noise, and a party that cannot
is refused by name. hushsum job check prints how many clips that is. --malicious
F has this share of the parties cheat: leave out --bounded to see what they do
to the model. Without FILE both add noise and a clip.
`

const simulateNoise = `With --noise, what is summed is each party's update: its new weights less the
model it began from, clipped to an L2 norm of --clip, turned at random, and
rounded to whole numbers. Every party adds a share of noise, large enough that
the shares of the fewest survivors without the colluders have a standard
deviation of --noise-multiplier times the L2 sensitivity after rounding; all
three laws are measured in this way. The next model is the old one plus the mean
update. The training in the clear clips in the same way, but neither rounds nor
adds noise. Noise is fresh in every run, whatever the seed.

Each line shows how much of a party's privacy the rounds have spent so far, as
epsilon at --delta, an upper bound: "eps server" against the server and the
colluders, "eps public" against those who see only the released models. They
differ when rounds are sampled in secret, but here every party is in all rounds.
With --epsilon the noise is calibrated so that all rounds together stay within
it, against the server, and the run ends before a round that would overspend.
`

const simulateTable = `One line is printed per round:
  parties      in the sum, of all; or that the round is lost
  up, down     bytes from and to each party: messages and the broadcast model
  train ms     a party's local training
  sum ms       a party's work for the private sum: encoding its weights and
               masking; with recovery also shares and signatures
  server ms    the server's work for all parties
  eps server,  with noise in place of train ms, down and server ms: what has
  eps public   been spent, see 'hushsum help simulate noise'
  accuracy     of the model, on rows that no party has
  MCC          its Matthews correlation: 1 is perfect, 0 is no better than
               giving every row the same answer
Bytes and times of parties are means over all, drop-outs included. A long run
first prints on standard error what its sums take, and then, where no line on a
terminal shows its progress, reports it there every ten seconds.
`

const simulateModels = `Other data, models and rules. With any flag of this part, or data that is not a
census, parties submit updates of equal weight:
  --data     adult, digits, mnist or fashion-mnist, found in the folder
             HUSHSUM_DATA or in ../shared/data; or the folder with its files
  --final    test rows of mnist or fashion-mnist judge. Without it the last 10,000
             of their training rows do, which then train nothing: choose models
             and rates on these, and read the test rows once
  --model    softmax (multinomial logistic regression), mlp:N,N,... with N units
             in each hidden layer, lenet or lenet-norm (with batch norm) for
             images, or logistic for two classes
  --split    how rows are dealt: %s
  --by-rows  updates weigh as many rows as a party has, and not equally
  --rule     fedavg, fedprox, scaffold or fedga of the parties, or momentum,
             fedadagrad, fedadam or fedyogi of the server; two with a plus sign,
             as in fedprox+fedadam
  --mask     soft or hard: weigh each coordinate by how far the signs of the
             updates agree. The signs are summed with the updates, and get
             half of the privacy budget if there is noise
  --clip     without noise: updates are clipped to this L2 norm
--local-steps replaces --epochs, and --fraction-bits is 20. A census is trained
as without these flags: logistic, 100 parties of 200 rows, rate 2, lambda 1e-4,
50 steps over all rows. Images have --model softmax, --clients 10, all rows
dealt unless --rows-per-client limits them, --rate 0.1, --lambda 0, and one
epoch in batches of 32. Columns are
  norm       of the updates before clipping, a mean
  clipped    the share of updates that was clipped
  mask       the mean factor of the mask
instead of bytes down and server ms; only the person who runs the simulation
sees these figures, and accuracy, of the parties, and no epsilon covers them.
`

const simulateJSON = `With --json there is one object per line, first one for each round:
  round                      its number, from 1
  clients                    parties in the sum; 0 if the round is lost
  accuracy, mcc              of the model out of the private sum
  clear_accuracy, clear_mcc  of the model trained in the clear
  max_abs_diff               largest difference between two of their weights
  largest_weight             largest magnitude of a number that any party
                             submitted, a weight or a coordinate of an update
  mean_norm, max_norm        L2 norms of the updates before clipping
  cosine                     of updates and the last step, a mean
  clipped, clip_norm         share of updates that was clipped, and to what; 0
                             without clipping
  mask                       mean factor of the gradient mask, 1 without
  bytes_up, bytes_down       from and to each party
  train_ms, client_ms        a party's training, and its work for the sum
  server_ms                  the server's work for all parties
  dropped                    parties that dropped out, at whatever moment
  refused                    parties that cheated and were refused
  lost                       whether too few were left
  spent, spent_public        claims of what is spent so far, against the server
                             and against those who see released sums, each as
                             "claim" of 'hushsum account --json': epsilon,
                             at_least, delta, unit, server, colluders, assumes
                             and others; null without noise
then one with "summary": true. It has the same keys, for the last round; but
bytes, times, dropped and refused are totals over all rounds, largest_weight is
the largest of all, and mask is as the flag says. Keys about a model are null if
no round was completed. It adds:
  complete                   whether all rounds were run
  certified                  the largest claim of any party, as in spent, of all
                             rounds; null without noise
  epsilon, delta             what it bounds; null where nothing does
  alone_accuracy, alone_mcc  of the model that a party trains without the others,
                             without noise, a mean; null for over 100 parties
  data, model, split, rule   as the flags say
  chosen_on                  "hold-out" or "test": which rows judge
  rows_per_client            training rows of each party, a mean
  parameters                 weights of the model
  ring_bits, count_bits      bits on the wire of a coordinate, and of the number
                             of rows; 0 if that is not submitted apart
  setup_bytes_up, setup_bytes_down, setup_client_ms, setup_server_ms
                             the key exchange, and with recovery the material
                             for the first round: done once, and in no other
                             key but total_ms
  total_ms                   the whole run, on the clock, loading data included
  protocol                   "pairwise" or "oneshot"
  members                    of the committee; 0 without
  member_ms, member_bytes_down
                             one member's work in all rounds, and what it gets
  recovery                   "off", or the adversary: "cheating" or "curious"
  drop, colluders            as the flags say
  bounded, malicious         as the flags say
  threshold                  shares that rebuild a secret; 0 without recovery
  min_survivors              the fewest parties in a sum
  lost_rounds                how many rounds were lost
  noise                      "none", or the law, as the flag says
  noise_multiplier           as the flag says; 0 without noise
  clip                       as the flag says; 0 without noise and clipping
  noise_stddev               standard deviation of the noise that is left in
                             each coordinate of a sum of updates in any case
  noise_shares               honest shares that suffice for it; 0 without noise
  sensitivity                L2 norm of the largest update after rounding, in
                             units of the weights
  budget                     --epsilon at --delta, and what it is about; null
                             without
  stopped                    whether the budget ended the run early
  caution                    of a delta above one in the parties or records; left
                             out if there is none

In virtual time the objects are the same, without the keys that begin with clear,
setup, member_ or spent, without max_abs_diff, refused, train_ms, client_ms,
server_ms and alone_mcc, and with
  seconds                    of virtual time, until the last party has the model
  why                        the round is lost; left out if it is not
  steps, waited_for          of one-message sums: step and seconds of each, and
                             the parties and members that it waited for
  server_bytes_received      by all servers
Before it there is an object for each party, and after it one for each member:
  party or member, place     who, and where
  included, left             in the sum; for good, after this round
  alone                      accuracy of a model of its own rows only
  work_seconds, bytes_sent, bytes_received
                             of this round
With --sweep or --seeds there is an object for each combination:
  accuracy, mcc, alone, seconds, certified
                             of the last model; null without
  accuracy_sd and so on      standard deviations over --seeds
  seeds, digests             how many, and what identifies each run; digest
                             without --seeds
  error                      why there is no result, in place of the others
`

// simulateManual returns the help of simulate.
func simulateManual() *cli.Manual {
	names := strings.Join(cli.Wrap(strings.Join(learning.PartitionNames(), ", "), cli.Width-34),
		"\n             ")
	return &cli.Manual{
		Takes: "It takes one FILE, and flags.",
		About: simulateAbout,
		Topics: []cli.Topic{
			{Name: "files", About: "jobs from files, virtual time and sweeps", Text: simulateFiles},
			{Name: "drop-outs", About: "parties that leave, and sums from one message",
				Text: simulateDropOuts},
			{Name: "noise", About: "noise, and how much privacy is spent", Text: simulateNoise},
			{Name: "models", About: "other data, models and rules",
				Text: fmt.Sprintf(simulateModels, names)},
			{Name: "table", About: "what the columns show", Text: simulateTable},
			{Name: "json", About: "what --json prints", Text: simulateJSON},
		},
		Examples: []string{
			"hushsum simulate",
			"hushsum simulate --clients 10 --rounds 5",
			"hushsum simulate --drop 0.1",
			"hushsum simulate --protocol oneshot --clients 1000 --rows-per-client 20",
			"hushsum simulate --noise discrete-gaussian --noise-multiplier 0.5",
			"hushsum simulate --epsilon 4 --delta 1e-5",
			"hushsum simulate --data path/to/adult --json",
			"hushsum simulate simulation/scenarios/latency.toml",
			"hushsum simulate simulation/scenarios/hospitals.toml --out hospitals",
			`hushsum simulate simulation/scenarios/digits.toml --sweep "epsilon=0.1,1,8"`,
			"hushsum simulate --unit record --clients 3 --epsilon 8 --seeds 5",
		},
	}
}
