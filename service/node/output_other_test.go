//go:build !linux

package node_test

import (
	"errors"
	"os"
)

func parentOutput() (*os.File, error) { return nil, errors.ErrUnsupported }
