// Command gocall measures what a party's submission takes in Go: boundary.py asks it for
// rounds between its own, so that both are measured in one run on one machine.
//
//	gocall LENGTH PARTIES
//
// For each line on standard input it holds a round and prints the nanoseconds that each
// party took from its vector to its message.
package main

import (
	"bufio"
	"crypto"
	"crypto/ed25519"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gocall:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("give the length and the number of parties")
	}
	length, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	carrier, settled, err := session(length, n)
	if err != nil {
		return err
	}
	vector, model := make([]float64, length), make([]float64, length)
	for i := range vector {
		vector[i] = float64(i%7) / 7
	}
	lines := bufio.NewScanner(os.Stdin)
	for round := uint64(0); lines.Scan(); round++ {
		broadcast, err := aggregation.AppendModel(make([]byte, 40, 40+8*length), model)
		if err != nil {
			return err
		}
		broadcast[0] = byte(round) + 1
		if err := carrier.Begin(broadcast); err != nil {
			return err
		}
		for i, c := range carrier.Clients {
			began := time.Now()
			made := job.Update[float64]{Vector: vector}
			values, err := settled.Encode(job.BroadcastDigest(broadcast), made, nil)
			if err != nil {
				return err
			}
			message, err := c.Submit(broadcast, values...)
			if err != nil {
				return err
			}
			fmt.Print(time.Since(began).Nanoseconds(), " ")
			if err := carrier.ToServer(i, message); err != nil {
				return err
			}
		}
		if err := carrier.Certify(); err != nil {
			return err
		}
		if _, err := carrier.Server.Sum(); err != nil {
			return err
		}
		fmt.Println()
	}
	return lines.Err()
}

// session makes a session of the job that boundary.py has.
func session(length, n int) (
	*protocol.Carrier[*protocol.Server, *protocol.Client], *job.Settled, error,
) {
	var members []keyexchange.Entry
	var signers []crypto.Signer
	for i := range n {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, key)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party", i),
			Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, nil, err
	}
	declared := job.Job{
		Name:    "boundary",
		Rounds:  1000,
		Model:   job.Model{Length: length},
		Parties: job.Parties{Count: n, DropOut: 0.2},
		Privacy: job.Privacy{Noise: "discrete-gaussian", Epsilon: 1000, Clip: 1},
	}
	settled, err := declared.Settle(job.Files{Roster: roster})
	if err != nil {
		return nil, nil, err
	}
	config := settled.Config(1)
	server, err := protocol.NewServer(config)
	if err != nil {
		return nil, nil, err
	}
	carrier := &protocol.Carrier[*protocol.Server, *protocol.Client]{Config: config, Server: server}
	for _, s := range signers {
		client, err := protocol.NewClient(config, s, nil)
		if err != nil {
			return nil, nil, err
		}
		carrier.Clients = append(carrier.Clients, client)
	}
	return carrier, settled, carrier.SetUp()
}
