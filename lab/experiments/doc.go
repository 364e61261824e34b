// Package experiments holds the tables that hushsum reruns: what is trained or
// computed, with which settings, and what the papers print for it. It neither
// prints nor plots; command lab does.
//
// An experiment is a set of arms that are trained with the same seeds: seed k deals
// the rows, starts the model and draws batches and parties alike in every arm, so
// that arms are compared seed by seed. Without noise the same seeds give the same
// table. Noise for privacy is new in every run.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package experiments
