// Package old reads the declarations that there were before package job: a plan in JSON, a
// federation's file, that with rows which hushsumd dev --spec takes, and a scenario. It makes jobs
// of them, and says what changes in meaning. It is there for one release.
//
// It has the old forms as they were, with names exactly as declared and no key twice. What an old
// reader refused beyond that, such as noise without a budget, a job's own rules refuse.
package old
