package door_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/signature"
)

// resign signs a request without a body again, as it is now.
func resign(t *testing.T, r *http.Request, key ed25519.PrivateKey) {
	t.Helper()
	if err := signature.Sign(r, nil, key, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func pemOf(t *testing.T, key ed25519.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
