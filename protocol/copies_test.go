//go:build goexperiment.runtimesecret

package protocol

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// Thirty saves leave tens of copies of a chain's key in memory, and few where package
// runtime/secret erases them:
//
//	GOEXPERIMENT=runtimesecret go test ./protocol -run Copies -v
func TestSavedKeysLeaveNoCopies(t *testing.T) {
	c := recoveryAt(t, afterSetUp).Clients[0]
	var sealing keyexchange.SealKey
	peer := sortedKeys(c.chains)[0]
	chain, err := c.chains[peer].AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	secret := chain[8:]
	grown := func(save func(*keyexchange.SealKey) ([]byte, error)) int {
		before := copiesInMemory(t, secret)
		for range 30 {
			if _, err := save(&sealing); err != nil {
				t.Fatal(err)
			}
		}
		return copiesInMemory(t, secret) - before
	}
	erased, kept := 0, 0 // how many are left depends on when memory is used again
	for range 10 {
		erased += max(grown(c.Save), 0)
		kept += max(grown(c.save), 0)
	}
	t.Logf("30 saves leave %d copies of a key, %d without erasure, in the mean", erased/10, kept/10)
	if kept < 2*erased {
		t.Error("want less than half")
	}
}

// copiesInMemory counts where a secret stands in the memory that this process can write.
func copiesInMemory(t *testing.T, secret []byte) int {
	t.Helper()
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Skip("there is no /proc/self/mem: ", err)
	}
	defer memory.Close()
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	const piece = 1 << 20
	buffer := make([]byte, piece+len(secret)-1)
	defer clear(buffer)
	count := 0
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if !strings.HasPrefix(fields[1], "rw") {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		for ; from < to; from += piece {
			n, _ := memory.ReadAt(buffer[:min(int64(len(buffer)), to-from)], from)
			count += bytes.Count(buffer[:n], secret)
			clear(buffer)
		}
	}
	return count
}
