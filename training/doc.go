// Package training holds the rules by which a model is trained from private sums: what a party
// makes of its rows in a round, what it submits, and what the server makes of the sum. It knows
// neither who carries the sums nor a simulator: a simulation, the service and a program of one's
// own train by the same rules.
package training
