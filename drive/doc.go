// Package drive decides what happens next in a job: who is in a session and in a round, when a step
// need not wait any longer, when a party answers, what it answers, and what it counts. Programs,
// services and scenarios in virtual time share it: they carry messages, keep states and run
// training, and drive says when.
//
// A [Lead] leads a job, of pairwise sums or of sums of which parties send one message a round to a
// committee. A [Part] takes part, as a party of either or as a member of the committee. All are
// driven in the same way.
//
// # How to drive a lead
//
// Events ([Lead.Connected], [Lead.Gone], [Lead.Heard], [Lead.Receive] and others) change what the
// lead knows and decide nothing. [Lead.Tick] decides what is due, and [Lead.Wake] says when it is
// due next if nothing happens before. What follows from decisions comes out in two steps:
//
//	for {
//		wait(l.Wake())           // or until an event, whose method is then called
//		l.Tick(now)
//		r, any := l.Ready()
//		if !any {
//			continue
//		}
//		if r.Save {
//			save(l.Save(key))    // durable when this returns: objects first, then the state
//		}
//		orders := l.Advance(now)
//		report(r.Notices)
//		if orders.Apply != nil {
//			go apply(orders.Apply)   // answered by l.Applied
//		}
//		if orders.Tell {
//			for item := range l.Pending(peer) { … }   // for each peer, when its link has room
//		}
//	}
//
// Package host has this loop in real time.
//
// A part is driven alike: [Part.Receive] and [Part.Answer] are events, [Part.Ready] says whether
// something has to be saved (the submission before the state), and [Part.Advance] returns the
// messages that may leave and the question to the program; or [Out] says that the program should
// end, since what it works on comes too late.
//
// The caller makes all calls from one goroutine, or under one lock. An error of a method is the
// caller's mistake or a fault of this machine, and ends the job there; a peer's mistake is a
// [Notice], a [Report], or an error of [Lead.Receive] alone, and changes nothing.
//
// # What is promised
//
// Of a server: the numbers of its sessions rise, and at most one session is present and one forms;
// a round has one list of parties, one sum and one model, and is charged in the state that begins
// it; the bytes of an [Item] with one name never change. Of a party: it never sends two different
// messages of one type in a round of a session; it answers each round of the job once, none after
// the last, and none that would take it over its budget. All of that holds over crashes at any
// point, if what [Lead.Save] and [Part.Save] return is loaded as it was saved last.
//
// In a job with recovery at most max(c, 1) rounds are spoilt by c colluding parties (SPEC.md
// §10.4), because faults belong to identities and are remembered for the whole job: new keys do not
// make a new party. A silent party costs one StepTime, and rounds wait less for it from then on.
//
// # Why no goroutine, clock, socket or file
//
// The package has none of them, and no randomness but what it is given: the same events at the same
// times give the same decisions. Such protocols fail when a crash, a late message and a deadline
// come in an order that nobody thought of. Without a clock these orders can be tried out: tests of
// this package run worlds with losses, cuts, crashes and lies by the thousand, each from a seed
// that repeats it (TestWorlds), and for small jobs every possible order (TestExhaustive). They
// found faults that reading had not, such as an answer of the program that comes after its round,
// or a server that counted its deadlines from 0 after a restart and lost the round. Without them
// there is also one place that decides: TCP, HTTPS and virtual time (simulation) have the
// same rounds, since none of them has rules of its own. Package simulation alone runs batches of
// rounds without waiting, and calls protocol itself.
//
// # Why save, then send
//
// A message that has left cannot be taken back, and a machine that forgets it contradicts itself: a
// party that forgets a submission answers the round a second time with other bytes, though the
// ledger has counted one submission; a server that forgets which parties it asked asks other
// parties, and honest parties refuse. So no message leaves before the state that knows of the
// message is durable. The types guarantee this, not a rule for callers: Pending yields nothing, and
// a party hands out nothing, until Advance is called, and Advance is called once the state is
// saved.
//
// Only decisions are saved, and once a minute the messages that a short sum holds. A message that
// the server holds is lost in a crash, and the party sends the same bytes again; saving each
// message would cost a write for each party in each step. One decision is in flight at a time:
// messages that arrive during a save are held and decide nothing. Several decisions share a save if
// nothing leaves between them.
//
// After a load the server expects all parties back for a while (ComeBack), and counts deadlines
// from then: nobody could answer while it was away. It asks a question again under the same name
// ([AskID], or the round of [Apply]), so that an answer that is ready serves.
//
// # Why each decision is as it is
//
// Pull, not push. A message is made when the carrier can write it. The keys of 10,000 parties are
// gigabytes as one list, a broadcast is as long as a model, and a party that polls fetches when it
// likes. So Advance says for whom there is something new, and Pending makes one item at a time.
//
// Waiting follows from what parties do. A step is over when all parties have answered, or when each
// party that has not answered is away or has used up its patience, and the parties that are away
// have had the time in which other parties came back. A deadline that grew with the roster would
// have thousands wait for a few that are silent. A party has the patience of one StepTime in all,
// for what it takes beyond a part of each step that is free, and less for 2, 4, 8 … rounds after
// each step that the party let pass: a party that hangs in every round, or answers at the last
// moment, then costs a logarithm of the rounds. Where many let steps pass it is the time that is
// short: a server says so, and leaves only few of them out of rounds, which would otherwise be lost
// for want of any one of the others.
//
// Sessions form next to rounds. A new session does not touch the present one until it is ready, so
// a newcomer, or a party that lost its state, costs no round. It takes over unless the present one
// has more parties that are here: where many messages come late, each set-up loses some. A party
// for whom sessions form again and again waits twice as long each time. A set of parties with which
// a round could not begin is not tried again until something has changed, since each try uses up
// one of the session's round numbers.
//
// Numbers are believed if more than c parties tell them. A server that was restored from a backup
// is behind its parties; it learns from them, charges what it has forgotten as lost, and goes on. A
// single liar must not be able to move the server, nor to use numbers up: the server jumps by at
// most 2^20, and a party follows no jump above 2^40.
//
// Applying is a stage. The sum is saved, then the program is asked for the next model, which may
// take minutes; a restart asks again. The answer, or an error, is the next decision: an error loses
// that round and not the job.
//
// A party guards itself. It believes nobody about its budget: not the coordinator, not another
// party, not an earlier state of its own. Its [Guard] counts a submission before the submission
// leaves, and a submission that was counted but not sent stays spent. Rounds have rising numbers,
// so a guard need only remember the last number and a count. A broadcast belongs to the message
// that begins its round and names the question that it leads to: a party would otherwise train on
// the model of another round. In a job with noise a party without a vector submits zeros with its
// noise, so that its absence tells nothing of its rows.
//
// A committee adds: as many parties upload at a time as there is room for, so that each sends once.
// A number is used up by an opening with the member's own signed keys, not by an invitation, which
// anybody could send. A party whose cover does not open is named and left out of later rounds;
// anything else that garbles a sum costs that round (SPEC-ONESHOT.md §10.7). With a buffer a round
// takes a given number of submissions, the first to arrive, and slower parties offer a vector made
// from an earlier broadcast in a later round; each party is charged for the submissions that it has
// sent, and a sum has at least MinSurvivors parties.
package drive
