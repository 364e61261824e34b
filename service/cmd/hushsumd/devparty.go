package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/store"
)

// devPartyName and devMemberName are the names under which dev starts its parties and its
// committee; they are not commands for people.
const (
	devPartyName  = "dev-party"
	devMemberName = "dev-member"
)

func writeRows(name string, rows *learning.Dataset) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(rows); err != nil {
		return err
	}
	return store.FileStore(name).Save(b.Bytes())
}

// devProcess runs one of dev's processes, the one of the given number, until dev ends.
func devProcess(ctx context.Context, args []string, std streams,
	run func(ctx context.Context, folder string, i int, std streams) error,
) error {
	if len(args) != 2 {
		return misuse("it takes a folder and a number")
	}
	folder := args[0]
	i, err := strconv.Atoi(args[1])
	if err != nil {
		return misuse("%q is not a number", args[1])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, std.in)
		cancel() // who started this has ended
	}()
	err = run(ctx, folder, i, std)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// runDevParty is one party of dev: it trains on the rows that it was dealt.
func runDevParty(ctx context.Context, folder string, i int, std streams) error {
	p, err := devPeer(folder, partyFolder(folder, i), std)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(p.Folder, "rows"))
	if err != nil {
		return err
	}
	rows := new(learning.Dataset)
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(rows); err != nil {
		return err
	}
	if p.Trainer, err = party.NewDeclared(p.Federation, i, rows, p.Folder); err != nil {
		return err
	}
	_, err = p.Run(ctx)
	return err
}

// runDevMember is one member of dev's committee.
func runDevMember(ctx context.Context, folder string, k int, std streams) error {
	p, err := devPeer(folder, memberFolder(folder, k), std)
	if err != nil {
		return err
	}
	m := party.Member{
		Federation: p.Federation,
		Identity:   p.Identity,
		Server:     p.Server,
		Folder:     p.Folder,
		Key:        p.Key,
		Log:        p.Log,
	}
	return m.Run(ctx)
}

// devPeer reads the files that dev has left for a process in a folder of its own.
func devPeer(folder, dir string, std streams) (p *party.Party, err error) {
	b, err := os.ReadFile(filepath.Join(folder, "site.json"))
	if err != nil {
		return nil, err
	}
	var site devSite
	if err := json.Unmarshal(b, &site); err != nil {
		return nil, err
	}
	p = &party.Party{Folder: dir}
	if p.Federation, err = readFederation(folder); err != nil {
		return nil, err
	}
	identity, err := keyfile.ReadIdentity(filepath.Join(dir, "identity.pem"))
	if err != nil {
		return nil, err
	}
	p.Identity = identity
	if p.Server, err = party.NewServer(site.Address, site.Fingerprint, identity); err != nil {
		return nil, err
	}
	if p.Key, err = keyfile.SealKey(filepath.Join(dir, "seal.key"), true); err != nil {
		return nil, err
	}
	p.Log, err = logger(std.err, "error")
	return p, err
}
