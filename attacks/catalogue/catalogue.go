// Package catalogue joins the families of attacks.
package catalogue

import (
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/collusion"
	"github.com/hushsum/hushsum/attacks/committee"
	"github.com/hushsum/hushsum/attacks/epsilon"
	"github.com/hushsum/hushsum/attacks/model"
	"github.com/hushsum/hushsum/attacks/observation"
	"github.com/hushsum/hushsum/attacks/rounds"
	"github.com/hushsum/hushsum/attacks/session"
)

// All returns all attacks, in the order of the report.
func All() []attacks.Attack {
	var all []attacks.Attack
	all = append(all, collusion.Attacks()...)
	all = append(all, session.Attacks()...)
	all = append(all, rounds.Attacks()...)
	all = append(all, committee.Attacks()...)
	all = append(all, observation.Attacks()...)
	all = append(all, model.Attacks()...)
	all = append(all, epsilon.Attacks()...)
	return all
}
