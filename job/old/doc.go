// Package old reads the declarations from before package job: a plan in JSON, a federation's file,
// the one with rows that hushsumd dev --spec takes, and a scenario. It converts them to jobs, and
// says what changes in meaning. It is kept for one release.
//
// It reads the old forms as they were, with names exactly as declared and no key twice. What an old
// reader refused beyond that, such as noise without a budget, a job's own rules refuse.
package old
