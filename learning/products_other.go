//go:build !amd64 || purego

package learning

// multiply is the way of multiplying in use.
var multiply = &portable
