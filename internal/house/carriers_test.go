package house

import (
	"go/ast"
	"strings"
	"testing"
)

// carried lists what every carrier of a job does alike, links in the root and the door of the
// service, with the tests that show it: of the loops that both have, and over each.
var carried = []struct{ what, host, links, service string }{
	{"what is decided is saved before anything follows from it",
		"TestSavedBeforeItIsFollowed TestBlockedSaveLetsNothingOut TestPlayerSaves",
		"TestCoordinatorSavesFirst TestParticipantSavesFirst",
		"runner.TestNothingBeforeRecorded runner.TestNotRecordedNotSaid party.TestLostSubmission"},
	{"whoever is killed at any step goes on",
		"TestVaultKilled",
		"TestJobRestarts TestOneshotRestarts TestLongJobRestarts TestFloat32JobRestarts",
		"node.TestKillServerAtEveryStep node.TestKillCommitteeServerAtEveryStep party.TestStoreKilled"},
	{"what a leader held when it stopped is not asked for again",
		"TestLastSave", "TestStoppedInMidStep", "runner.TestPassed node.TestPassTo"},
	{"training ends when its round goes on without the party, and messages are read meanwhile",
		"TestPlayerCancels", "TestWorkCancelled TestWorkCancelledOneshot", "party.TestWorkEnds"},
	{"five lost rounds in a row pause a job", "", "TestLostInRow TestPaused",
		"node.TestAllFailInTraining"},
	{"a job goes on from an older state, and counts what it lost as spent",
		"", "TestCoordinatorSetBack TestForgetfulCoordinator",
		"runner.TestSetBack node.TestMissingState node.TestMissingStateOfCommittee"},
	{"a lost state is declared, and that is saved at once",
		"TestPlayerLost", "TestLostSaved TestLostState",
		"party.TestLostState party.TestMemberLost party.TestOneshotLostOnce"},
	{"a party that had nothing to submit learns its own reason",
		"TestPlayerMissed", "TestBlamesItself TestMissedInAllRounds", "party.TestAbsent"},
	{"what parties know of later rounds is heard between connects too",
		"", "TestNumbersBelieved TestAbsenceTold", "runner.TestNumbersTold runner.TestAbsenceTold"},
	{"who comes again waits longer each time, and not all at once",
		"", "TestDialsSpread", "party.TestWaitsBeginAnew party.TestComesBackSoon"},
	{"a submission leaves at its instant",
		"TestPlayerInstants", "TestEventsOfWork", "party.TestSubmittedAtInstant"},
	{"with a buffer, training outlives its round and its connection",
		"TestPlayerOutlives", "TestBufferedJob", "node.TestBuffered"},
	{"the book counts a submission before it leaves",
		"TestPartVault", "TestBookBeforeItLeaves", "party.TestBookCounts"},
	{"the first round waits for those that begin_with wants",
		"", "TestBeginWith", "runner.TestBeginWith"},
	{"who spoilt a round stays out, whichever keys it comes back with",
		"", "TestSpoilerComesAgain", "runner.TestSpoilerComesAgain"},
	{"a connection that breaks within a body loses nothing",
		"", "TestCoordinatorLinksBreak TestLongJobTCP",
		"party.TestBrokenUploads door.TestBrokenPiece"},
	{"a peer sends no more than there is room for",
		"TestRoom", "TestLimits TestFrameAfterHello", "door.TestManyBodies door.TestRoomOfUploads"},
	{"members are not kept waiting by thousands of parties",
		"TestMembersFirst", "TestOneshotGoesOn", "node.TestKillCommitteeNodes"},
	{"sums are exact, and the same of the same job",
		"", "TestJob TestOneshotJob TestDeclaredJob", "node.TestFourWays node.TestFourWaysOneshot"},
	{"loss and accuracy are summed under the same noise",
		"", "TestEvaluate", "federation.TestGolden"},
}

// Each promise of carried has its tests, over links and over the door.
func TestCarriers(t *testing.T) {
	tests := map[string]bool{} // by folder and name
	for _, s := range sources(t) {
		if !s.test() {
			continue
		}
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[s.dir()+" "+f.Name.Name] = true
			}
		}
	}
	has := func(folder, name string) {
		t.Helper()
		if !tests[folder+" "+name] {
			t.Errorf("%s has no test %s", folder, name)
		}
	}
	for _, c := range carried {
		if c.links == "" || c.service == "" {
			t.Errorf("%q has no test over links or over the door", c.what)
		}
		for name := range strings.FieldsSeq(c.host) {
			has("host", name)
		}
		for name := range strings.FieldsSeq(c.links) {
			has(".", name)
		}
		for name := range strings.FieldsSeq(c.service) {
			folder, name, _ := strings.Cut(name, ".")
			has("service/"+folder, name)
		}
	}
}
