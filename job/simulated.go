package job

// Simulated returns why a job can only be simulated: for each field whose presence or absence keeps
// parties from running the job across machines, the mistake and what to write instead. Simulated
// returns nil if parties can run the job across machines.
func (j *Job) Simulated() (why []*ConfigError) {
	j = j.WithDefaults()
	if j.Parties.Roster == "" {
		why = append(why, j.noRoster())
	}
	if j.Model.File == "" && j.Model.Numbers() == 0 && !j.Asks() {
		why = append(why, j.noLength())
	}
	if j.Noisy() {
		why = append(why, j.ofRecords()...)
	}
	if lacks := j.Lacks(Machines, "leave it out"); lacks != nil {
		why = append(why, lacks)
	}
	return why
}

// noRoster says that nothing names the parties.
func (j *Job) noRoster() *ConfigError {
	return j.Mistake("parties.roster", `write parties.roster = "roster.txt"`,
		"it names no file of parties")
}

// noLength says that a job does not say of itself what parties send.
func (j *Job) noLength() *ConfigError {
	return j.Mistake("model", "write model.features and model.classes, or fewer of them",
		"nothing says how long a vector is, or it is too long")
}

// ofRecords lists what is missing of a job whose noise hides single records.
func (j *Job) ofRecords() (missing []*ConfigError) {
	if j.PerRecord() && j.Privacy.Records == 0 {
		missing = append(missing, j.Mistake("privacy.records",
			"write how many all parties have together, as far as that is public",
			"nothing says with which probability a record is drawn"))
	}
	if j.PerRecord() && j.Privacy.SubmitAfter == 0 && !j.Asks() {
		missing = append(missing, j.Mistake("privacy.submit_after",
			`write how long training takes at most, such as "1m"`,
			"parties that have drawn many records would answer later than those that have drawn few"))
	}
	return missing
}
