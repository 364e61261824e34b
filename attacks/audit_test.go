package attacks

import "testing"

func TestAttackAuditMechanisms(t *testing.T) { runAttack(t, "AuditMechanisms") }
func TestAttackAuditPower(t *testing.T)      { runAttack(t, "AuditPower") }
func TestAttackAuditOneRun(t *testing.T)     { runAttack(t, "AuditOneRun") }
func TestAttackAuditRound(t *testing.T)      { runAttack(t, "AuditRound") }
