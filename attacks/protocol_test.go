package attacks

import "testing"

func TestAttackSplitView(t *testing.T)          { runAttack(t, "SplitView") }
func TestAttackSplitParticipants(t *testing.T)  { runAttack(t, "SplitParticipants") }
func TestAttackModelInconsistency(t *testing.T) { runAttack(t, "ModelInconsistency") }
func TestAttackLateInput(t *testing.T)          { runAttack(t, "LateInput") }
func TestAttackMaskReuse(t *testing.T)          { runAttack(t, "MaskReuse") }
func TestAttackStolenState(t *testing.T)        { runAttack(t, "StolenState") }
func TestAttackKeySubstitution(t *testing.T)    { runAttack(t, "KeySubstitution") }
func TestAttackThresholdDowngrade(t *testing.T) { runAttack(t, "ThresholdDowngrade") }
func TestAttackSybil(t *testing.T)              { runAttack(t, "Sybil") }
func TestAttackWrongShares(t *testing.T)        { runAttack(t, "WrongShares") }
func TestAttackMalformed(t *testing.T)          { runAttack(t, "Malformed") }
func TestAttackReplay(t *testing.T)             { runAttack(t, "Replay") }
func TestAttackReorder(t *testing.T)            { runAttack(t, "Reorder") }
func TestAttackFlood(t *testing.T)              { runAttack(t, "Flood") }
