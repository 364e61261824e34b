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

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
)

// devPartyName is how dev starts its parties; it is no command for people.
const devPartyName = "dev-party"

func writeRows(name string, rows *learning.Dataset) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(rows); err != nil {
		return err
	}
	return hushsum.FileStore(name).Save(b.Bytes())
}

// devParty is one party of dev: it trains on the rows that it was dealt.
func devParty(ctx context.Context, args []string, std streams) error {
	if len(args) != 2 {
		return misuse("it takes a folder and a number")
	}
	folder := args[0]
	i, err := strconv.Atoi(args[1])
	if err != nil {
		return misuse("%q is no number", args[1])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, std.in)
		cancel() // who started this has ended
	}()
	err = runDevParty(ctx, folder, i, std)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func runDevParty(ctx context.Context, folder string, i int, std streams) error {
	dir := partyFolder(folder, i)
	b, err := os.ReadFile(filepath.Join(dir, "rows"))
	if err != nil {
		return err
	}
	rows := new(learning.Dataset)
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(rows); err != nil {
		return err
	}
	if b, err = os.ReadFile(filepath.Join(folder, "site.json")); err != nil {
		return err
	}
	var site devSite
	if err := json.Unmarshal(b, &site); err != nil {
		return err
	}
	fed, err := readFederation(folder)
	if err != nil {
		return err
	}
	identity, err := readIdentity(filepath.Join(dir, "identity.pem"))
	if err != nil {
		return err
	}
	server, err := party.NewServer(site.Address, site.Fingerprint, identity)
	if err != nil {
		return err
	}
	key, err := node.ReadKey(filepath.Join(dir, "seal.key"), true)
	if err != nil {
		return err
	}
	trainer, err := party.NewDeclared(fed, i, rows, dir)
	if err != nil {
		return err
	}
	log, err := logger(std.err, "error")
	if err != nil {
		return err
	}
	p := party.Party{
		Federation: fed,
		Identity:   identity,
		Server:     server,
		Folder:     dir,
		Key:        key,
		Log:        log,
		Trainer:    trainer,
	}
	_, err = p.Run(ctx)
	return err
}
