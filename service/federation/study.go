package federation

import "github.com/hushsum/hushsum/accounting"

// A Study bounds what federations that continue each other spend together.
type Study struct {
	Budget accounting.Budget `json:"budget"`
	Plan   accounting.Plan   `json:"plan"` // by which their rounds add up
	// Spent bounds what any party has spent of it, nil if that is not known.
	Spent *accounting.Claim `json:"spent,omitempty"`
}

// Study returns the study to which the federation belongs, before it begins; nil: to none.
func (f *Federation) Study() *Study {
	budget := f.Settled.Study()
	if budget == nil {
		return nil
	}
	return &Study{Budget: *budget, Plan: f.Settled.StudyPlan()}
}

// Spends fills in what the party with most has spent, of those that are named. It fails with
// errors of the accountant.
func (s *Study) Spends(ledger *accounting.Ledger, parties ...string) error {
	_, most, err := ledger.MostBy(s.Plan, s.Budget, parties...)
	if err == nil {
		s.Spent = &most
	}
	return err
}
