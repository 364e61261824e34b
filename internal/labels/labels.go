// Package labels is the registry of the texts that keep hashes, keys, signatures and files of one
// kind from being taken for those of another. All are of one generation, "hushsum/1", and none
// begins as another does: whatever follows a label, two labels never stand in front of the same
// bytes. SPEC-REGISTRY.md lists them with the places where the pages define their use.
//
// What is signed under a label begins with a byte, the label's length, which is below 64, and the
// label; or, where it is a text, with the label itself. Nothing else that the same keys sign begins
// so: TLS, certificates, requests, heads, checkpoints and cosignatures, of which SPEC-REGISTRY.md
// has a table.
package labels

// Of sums by masks, SPEC.md.
const (
	Roster       = "hushsum/1 roster"        // hash, SPEC.md §2.1
	AnnouncedKey = "hushsum/1 announced key" // signature, SPEC.md §2.3
	Ciphertexts  = "hushsum/1 ciphertexts"   // signature, SPEC.md §2.3
	Survivors    = "hushsum/1 survivors"     // signature, SPEC.md §2.3
	Config       = "hushsum/1 config"        // hash, SPEC.md §3.3
	Keys         = "hushsum/1 keys"          // hash, SPEC.md §4.2
	Session      = "hushsum/1 session"       // hash, SPEC.md §4.2
	Chain        = "hushsum/1 chain"         // key, SPEC.md §5.1
	Ratchet      = "hushsum/1 ratchet"       // key, SPEC.md §5.2
	Channels     = "hushsum/1 channels"      // key, SPEC.md §5.2
	Mask         = "hushsum/1 mask"          // key, SPEC.md §5.2
	Context      = "hushsum/1 context"       // hash, SPEC.md §5.2
	Broadcast    = "hushsum/1 broadcast"     // hash, SPEC.md §5.2
	Holders      = "hushsum/1 holders"       // hash, SPEC.md §5.2
	SelfMask     = "hushsum/1 self mask"     // key, SPEC.md §5.4
	BlobKey      = "hushsum/1 blob key"      // key, SPEC.md §5.4
	Share        = "hushsum/1 share"         // associated data, SPEC.md §6.3
	Commitment   = "hushsum/1 commitment"    // hash, SPEC.md §6.4
	BlobPlace    = "hushsum/1 blob place"    // associated data, SPEC.md §6.5
	Permutation  = "hushsum/1 permutation"   // hash, SPEC.md §7.1
	Schedule     = "hushsum/1 schedule"      // hash, SPEC.md §7.3
	Graph        = "hushsum/1 graph"         // hash, SPEC.md §7.4
	State        = "hushsum/1 state"         // saved state, of one side alone
	Series       = "hushsum/1 series"        // saved state, of one side alone
)

// Of sums of one message, SPEC-ONESHOT.md.
const (
	OneshotConfig       = "hushsum/1 oneshot config"        // hash, SPEC-ONESHOT.md §2
	OneshotRing         = "hushsum/1 oneshot ring"          // key, SPEC-ONESHOT.md §5
	OneshotCoverKey     = "hushsum/1 oneshot cover key"     // key, SPEC-ONESHOT.md §5
	OneshotCommitment   = "hushsum/1 oneshot commitment"    // hash, SPEC-ONESHOT.md §5
	OneshotLeaf         = "hushsum/1 oneshot leaf"          // hash, SPEC-ONESHOT.md §5
	OneshotNode         = "hushsum/1 oneshot node"          // hash, SPEC-ONESHOT.md §5
	OneshotBox          = "hushsum/1 oneshot box"           // key, SPEC-ONESHOT.md §5
	OneshotMasked       = "hushsum/1 oneshot masked"        // hash, SPEC-ONESHOT.md §5
	OneshotKey          = "hushsum/1 oneshot key"           // signature, SPEC-ONESHOT.md §6
	OneshotParty        = "hushsum/1 oneshot party"         // signature, SPEC-ONESHOT.md §6
	OneshotStale        = "hushsum/1 oneshot stale"         // signature, SPEC-ONESHOT.md §6
	OneshotClosing      = "hushsum/1 oneshot closing"       // signature, SPEC-ONESHOT.md §6
	OneshotBroadcast    = "hushsum/1 oneshot broadcast"     // hash, SPEC-ONESHOT.md §6
	OneshotContext      = "hushsum/1 oneshot context"       // hash, SPEC-ONESHOT.md §6
	OneshotChain        = "hushsum/1 oneshot chain"         // hash, SPEC-ONESHOT.md §6
	OneshotDealing      = "hushsum/1 oneshot dealing"       // hash, SPEC-ONESHOT.md §14
	OneshotProofDigest  = "hushsum/1 oneshot proof digest"  // hash, SPEC-ONESHOT.md §14
	OneshotPoint        = "hushsum/1 oneshot point"         // hash, SPEC-ONESHOT.md §14
	OneshotBoundedParty = "hushsum/1 oneshot bounded party" // signature, SPEC-ONESHOT.md §14
	OneshotEvidence     = "hushsum/1 oneshot evidence"      // file, SPEC-ONESHOT.md §14
	OneshotNoise        = "hushsum/1 oneshot noise"         // signature, SPEC-ONESHOT.md §15
	OneshotCoverLeaf    = "hushsum/1 oneshot cover leaf"    // hash, SPEC-ONESHOT.md §16
	OneshotGroups       = "hushsum/1 oneshot groups"        // key, SPEC-ONESHOT.md §17
	OneshotSeed         = "hushsum/1 oneshot seed"          // hash, SPEC-ONESHOT.md
	OneshotCandidate    = "hushsum/1 oneshot candidate"     // hash, SPEC-ONESHOT.md
	OneshotDrawn        = "hushsum/1 oneshot drawn"         // hash, SPEC-ONESHOT.md
	OneshotAudit        = "hushsum/1 oneshot audit"         // signature, SPEC-ONESHOT.md
	OneshotState        = "hushsum/1 oneshot state"         // saved state, of one side alone
)

// Of proofs of norms, SPEC-ONESHOT.md §13.
const (
	OneshotProofGenerator = "hushsum/1 oneshot proof generator" // point, SPEC-ONESHOT.md §13
	OneshotProofDealing   = "hushsum/1 oneshot proof dealing"   // hash, SPEC-ONESHOT.md §13
	OneshotProofGamma     = "hushsum/1 oneshot proof gamma"     // challenge, SPEC-ONESHOT.md §13
	OneshotProofRows      = "hushsum/1 oneshot proof rows"      // challenge, SPEC-ONESHOT.md §13
	OneshotProofTau       = "hushsum/1 oneshot proof tau"       // challenge, SPEC-ONESHOT.md §13
	OneshotProofFlood     = "hushsum/1 oneshot proof flood"     // challenge, SPEC-ONESHOT.md §13
	OneshotProofSum       = "hushsum/1 oneshot proof sum"       // challenge, SPEC-ONESHOT.md §13
	OneshotProofWeight    = "hushsum/1 oneshot proof weight"    // challenge, SPEC-ONESHOT.md §13
	OneshotProofEnd       = "hushsum/1 oneshot proof end"       // challenge, SPEC-ONESHOT.md §13
	OneshotProofChallenge = "hushsum/1 oneshot proof challenge" // challenge, SPEC-ONESHOT.md §13
	OneshotProofHalves    = "hushsum/1 oneshot proof halves"    // challenge, SPEC-ONESHOT.md §13
	OneshotProofFold      = "hushsum/1 oneshot proof fold"      // challenge, SPEC-ONESHOT.md §13
	OneshotProofCombine   = "hushsum/1 oneshot proof combine"   // challenge, SPEC-ONESHOT.md §13
	OneshotProofBatch     = "hushsum/1 oneshot proof batch"     // challenge, SPEC-ONESHOT.md §13
)

// Of jobs and their books, SPEC-TRANSPORT.md and docs/job.md.
const (
	Job               = "hushsum/1 job"                     // hash, SPEC-TRANSPORT.md §3
	SettledJob        = "hushsum/1 settled job"             // hash, SPEC-TRANSPORT.md §3
	FirstModel        = "hushsum/1 first model"             // hash, SPEC-RECORD.md
	Succession        = "hushsum/1 succession"              // signature, SPEC-RECORD.md
	RotationSigns     = "hushsum/1 rotation signs"          // key, SPEC-TRANSPORT.md §4
	RotationRound     = "hushsum/1 rotation of a round"     // hash, docs/job.md
	RotationBroadcast = "hushsum/1 rotation of a broadcast" // hash, SPEC-TRANSPORT.md §4
	Heavy             = "hushsum/1 heavy"                   // hash, docs/analytics.md
	BookOfJobs        = "hushsum/1 book of jobs"            // saved state, of one side alone
	BookEntry         = "hushsum/1 book entry"              // hash, SPEC-RECORD.md
	SidecarSavedParty = "hushsum/1 sidecar saved party"     // saved state, of one side alone
)

// Of the record, its receipts and its log, SPEC-RECORD.md.
const (
	Entry           = "hushsum/1 entry"              // signature, SPEC-RECORD.md
	Receipt         = "hushsum/1 receipt"            // file, SPEC-RECORD.md
	Leaf            = "hushsum/1 leaf"               // hash, SPEC-RECORD.md
	SaltLeaf        = "hushsum/1 salt of a leaf"     // key, SPEC-RECORD.md
	Evidence        = "hushsum/1 evidence"           // file, SPEC-RECORD.md
	Log             = "hushsum/1 log"                // file, SPEC-RECORD.md
	People          = "hushsum/1 people"             // key, SPEC-RECORD.md
	Names           = "hushsum/1 names"              // key, of nodes among themselves
	Notes           = "hushsum/1 notes"              // associated data, of nodes among themselves
	Record          = "hushsum/1 record"             // associated data, of nodes among themselves
	Store           = "hushsum/1 store"              // associated data, of one side alone
	NameSealKey     = "hushsum/1 name of a seal key" // hash, of nodes among themselves
	Backup          = "hushsum/1 backup"             // file, of nodes among themselves
	PartBackup      = "hushsum/1 part of a backup"   // associated data, of nodes among themselves
	BetweenNodes    = "hushsum/1 between nodes"      // signature, of nodes among themselves
	NextCertificate = "hushsum/1 next certificate"   // signature, openapi.json
)

// Of oblivious noise and of noise that parties make together.
const (
	ObliviousConfig       = "hushsum/1 oblivious config"        // hash, package oblivious
	ObliviousRatchet      = "hushsum/1 oblivious ratchet"       // key, package oblivious
	ObliviousChannel      = "hushsum/1 oblivious channel"       // key, package oblivious
	ObliviousBaseTransfer = "hushsum/1 oblivious base transfer" // hash, package oblivious
	ObliviousPoint        = "hushsum/1 oblivious point"         // point, package oblivious
	ObliviousBaseKey      = "hushsum/1 oblivious base key"      // key, package oblivious
	ObliviousStream       = "hushsum/1 oblivious stream"        // key, package oblivious
	ObliviousSeed         = "hushsum/1 oblivious seed"          // key, package oblivious
	ObliviousExtend       = "hushsum/1 oblivious extend"        // key, package oblivious
	ObliviousCheck        = "hushsum/1 oblivious check"         // challenge, package oblivious
	ObliviousProof        = "hushsum/1 oblivious proof"         // challenge, package oblivious
	ObliviousPad          = "hushsum/1 oblivious pad"           // key, package oblivious

	JointConfig       = "hushsum/1 joint config"             // hash, docs/joint-noise.md
	JointKeys         = "hushsum/1 joint keys"               // hash, docs/joint-noise.md
	JointInputs       = "hushsum/1 joint inputs"             // hash, docs/joint-noise.md
	JointTurn         = "hushsum/1 joint turn"               // hash, docs/joint-noise.md
	JointBody         = "hushsum/1 joint body"               // hash, docs/joint-noise.md
	JointMessage      = "hushsum/1 joint message"            // signature, docs/joint-noise.md
	JointProofKey     = "hushsum/1 joint proof of a key"     // challenge, docs/joint-noise.md
	JointProofInput   = "hushsum/1 joint proof of an input"  // challenge, docs/joint-noise.md
	JointProofTurn    = "hushsum/1 joint proof of a turn"    // challenge, docs/joint-noise.md
	JointProofShare   = "hushsum/1 joint proof of a share"   // challenge, docs/joint-noise.md
	JointWeightsShare = "hushsum/1 joint weights of a share" // challenge, docs/joint-noise.md
	JointCheck        = "hushsum/1 joint check"              // challenge, docs/joint-noise.md
)

// Of one machine alone.
const (
	CrowdSession   = "hushsum/1 crowd session"   // hash, package simulation/crowd
	CrowdContext   = "hushsum/1 crowd context"   // hash, package simulation/crowd
	CrowdSurvivors = "hushsum/1 crowd survivors" // signature, package simulation/crowd
	FlowerState    = "hushsum/1 flower state"    // key, module hushsum.flower
)
