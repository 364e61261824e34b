// Package children ends the processes that a started program has started itself.
package children
