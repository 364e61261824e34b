package attacks

// Catalogue returns all attacks, in the order of the report.
func Catalogue() []Attack {
	var all []Attack
	all = append(all, collusionAttacks()...)
	all = append(all, protocolAttacks()...)
	all = append(all, observationAttacks()...)
	all = append(all, modelAttacks()...)
	all = append(all, auditAttacks()...)
	return all
}
