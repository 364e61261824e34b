// Package children ends what a program that was started has started itself.
package children
