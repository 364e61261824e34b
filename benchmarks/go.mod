module github.com/hushsum/hushsum/benchmarks

go 1.26.0

require (
	github.com/cloudflare/circl v1.6.5
	github.com/google/differential-privacy/go/v3 v3.0.0
	github.com/hashicorp/vault v1.21.4
	github.com/hushsum/hushsum v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/bwesterb/go-ristretto v1.2.4 // indirect
	github.com/golang/glog v1.2.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/hushsum/hushsum => ..
