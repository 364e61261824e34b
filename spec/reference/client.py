"""A party of SPEC.md: the state machine of §11.1 and the series of §10.5."""

import copy
from types import SimpleNamespace

from primitives import (H, LABEL, L, expand, extract, hkdf, identity_public, kem_acceptable,
                        kem_decapsulate, kem_encapsulate, kem_keys, mask, seal, sha256, sign, u8,
                        u32, u64, unseal, verify, x25519, x25519_acceptable, x25519_public)
from session import (ANNOUNCE, BEGIN, CERTIFICATE, ENCAPSULATE, INVITE, KEYS, MASKED, MEMBERS,
                     REVEAL, SERVER, SIGNED, SURVIVORS, UPLOAD, Refused, Topology, cut, header,
                     make_set, need, need_length, pack, path_length, path_root, read_message,
                     read_scalar, read_set, set_size, share_data, shares_of, tree_root,
                     write_scalar)


class Pair:
    """The chain that a party has with a peer: §5.1 to §5.3."""

    def __init__(self, key, lower):
        self.round, self.key = 1, key
        self.lower = lower  # whether the party is the lower one of the two

    def move(self, round):
        """Moves the chain forward: §5.2, §5.6."""
        while self.round < round:
            self.key = expand(self.key, LABEL + b"ratchet", 64)[:32]
            self.round += 1
        return self

    def ahead(self, round):  # §5.6
        return copy.copy(self).move(round)

    def secret(self):
        """The pair secret of the chain's round."""
        return expand(self.key, LABEL + b"ratchet", 64)[32:]

    def channels(self):
        """Keys by (purpose, outgoing): §5.3."""
        keys = cut(expand(self.key, LABEL + b"channels", 128), 32)
        return {(purpose, outgoing): keys[2 * purpose + (outgoing != self.lower)]
                for purpose in (0, 1) for outgoing in (True, False)}


class Client:
    """One party in one session. random(k) returns k random bytes, or raises OSError."""

    def __init__(self, config, identity_seed, random):
        public = identity_public(identity_seed)
        self.config, self.identity, self.random = config, identity_seed, random
        self.index = next((i for i, p in enumerate(config.roster) if p[1] == public), None)
        need(self.index is not None, "ErrIdentity")
        self.state, self.last, self.session = "A", 0, None
        self.private = self.draw(32)
        entry = x25519_public(self.private)
        self.ek = b""
        if not config.classical:
            self.ek, self.dk = kem_keys(self.draw(64))
            entry += sha256(self.ek)
        signature = sign(identity_seed, b"announced key",
                         config.digest + u32(self.index) + entry)
        self.entry = entry + signature
        self.material = None  # (round, Q, body)
        self.open = None
        self.announce = (header(ANNOUNCE, config.digest, 0, self.index) + entry[:32] + self.ek
                         + signature)
        self.output = self.announce

    def draw(self, k, party=None):  # §11
        try:
            return self.random(k)
        except OSError:
            raise Refused("ErrRandom", party) from None

    def draw_scalar(self):  # §6.1
        return int.from_bytes(self.draw(64), "little") % L

    def receive(self, data):
        """Takes a message of the server and returns the answer, or None: §11.1."""
        c = self.config
        need(len(data) <= c.max_message(), "ErrOversized")
        m = read_message(data)
        handle = {KEYS: self.keys, BEGIN: self.begin}
        if c.recovery is not None:
            handle |= {INVITE: self.invite, SURVIVORS: self.survivors,
                       CERTIFICATE: self.certificate}
        if not c.classical:
            handle[MEMBERS] = self.members
        need(m.type in handle, "ErrType")
        need(m.sender == SERVER, "ErrSender")
        setting_up = m.type in (KEYS, MEMBERS)
        need(setting_up or self.state not in "AE", "ErrPhase")
        need(m.session == (c.digest if setting_up else self.session), "ErrSession")
        return self.sent(handle[m.type](m))

    def sent(self, answer):
        """Keeps the last message, which is sent again to who connects: end of §11.1."""
        if answer is not None:
            self.output = answer
        return answer

    # Set-up: §4.2.

    def keys(self, m):  # §4.2, §11.1
        c, me, n = self.config, self.index, self.config.n
        need(self.state == "A", "ErrPhase")
        need(m.round == 0, "ErrEncoding")
        announced, rest = read_set(m.body, n)
        size = 96 if c.classical else 128
        need(len(rest) >= size * len(announced), "ErrTruncated")
        need(me in announced, "ErrMembers", me)
        need(len(announced) >= c.min_members, "ErrTooFew")
        entries = dict(zip(sorted(announced), cut(rest[:size * len(announced)], size)))
        rest = rest[size * len(announced):]
        digest = H(b"keys", c.digest, m.body[:len(m.body) - len(rest)])
        topology = Topology(c, announced, digest)
        higher = [] if c.classical else topology.higher_peers(me)
        need_length(rest, 1184 * len(higher))
        need(entries[me] == self.entry, "ErrOwnKey")
        eks = dict(zip(higher, cut(rest, 1184)))
        secrets, encapsulated = {}, {}
        for v in topology.possible_peers(me):
            entry = entries[v]
            need(x25519_acceptable(entry[:32]), "ErrPublicKey", v)
            need(verify(c.roster[v][1], b"announced key", c.digest + u32(v) + entry[:-64],
                        entry[-64:]), "ErrSignature", v)
            need(v not in eks or sha256(eks[v]) == entry[32:64], "ErrSignature", v)
            secrets[v] = x25519(self.private, entry[:32])
            need(secrets[v] is not None, "ErrPublicKey", v)
            if v in eks:
                need(kem_acceptable(eks[v]), "ErrEncapsulationKey", v)
                encapsulated[v] = kem_encapsulate(eks[v], self.draw(32, v))
        if c.classical:
            return self.join(topology, announced, digest, secrets, {})
        ciphertexts = [encapsulated[v][1] for v in higher]
        root = tree_root([u32(v) + ct for v, ct in zip(higher, ciphertexts)])
        signature = sign(self.identity, b"ciphertexts", digest + u32(me) + root)
        self.state, self.topology, self.keys_digest = "E", topology, digest
        self.secrets, self.encapsulated, self.private = secrets, encapsulated, None
        return header(ENCAPSULATE, c.digest, 0, me) + b"".join(ciphertexts) + signature

    def members(self, m):  # §4.2, §4.3, §11.1
        c, me, topology = self.config, self.index, getattr(self, "topology", None)
        need(self.state == "E", "ErrPhase")
        need(m.round == 0, "ErrEncoding")
        members, rest = read_set(m.body, c.n)
        need(me in members, "ErrMembers", me)
        need(len(members) >= c.min_members, "ErrTooFew")
        need(members <= set(topology.announced), "ErrMembers")
        lower = [v for v in topology.possible_peers(me) if v < me and v in members]
        places = {}  # of the own ciphertext among those of a lower peer
        for v in lower:
            peers = topology.higher_peers(v)
            places[v] = peers.index(me), len(peers)
        sizes = {v: 1152 + 32 * path_length(*places[v]) for v in lower}
        need_length(rest, sum(sizes.values()))
        kem = {}
        for v in lower:
            part, rest = rest[:sizes[v]], rest[sizes[v]:]
            ct, path, signature = part[:1088], cut(part[1088:-64], 32), part[-64:]
            root = path_root(u32(me) + ct, *places[v], path)
            need(verify(c.roster[v][1], b"ciphertexts", self.keys_digest + u32(v) + root,
                        signature), "ErrSignature", v)
            kem[v] = ct
        kem = {v: (kem_decapsulate(self.dk, ct), ct) for v, ct in kem.items()}
        return self.join(topology, members, self.keys_digest, self.secrets,
                         self.encapsulated | kem)

    def join(self, topology, members, keys_digest, secrets, kem):
        """Members from 5 on: the chains of §5.1."""
        c, me = self.config, self.index
        peers = [v for v in topology.possible_peers(me) if v in members]
        need(len(peers) >= c.numbers(len(members)).t, "ErrTooFew")
        session = H(b"session", keys_digest, make_set(members, c.n))
        topology.begin(members, session)
        pairs = {}
        for v in peers:
            low, high = sorted((me, v))
            info = LABEL + b"chain" + c.roster[low][1] + c.roster[high][1]
            secret = secrets[v]
            if not c.classical:
                secret, info = kem[v][0] + secret, info + sha256(kem[v][1])
            pairs[v] = Pair(expand(extract(session, secret), info, 32), me < v)
        material = None
        if c.recovery is not None:
            material = self.make_material(0, frozenset(members), topology, session, pairs)
        self.state, self.topology, self.session = "I", topology, session
        self.pairs, self.material = pairs, material
        self.private = self.dk = self.secrets = self.encapsulated = None
        if material is not None:
            return header(UPLOAD, session, 0, me) + material[2]
        return None

    # Recovery material: §6.5.

    def make_material(self, after, holders, topology, session, pairs):  # §6.5, "material" of §11.1
        c, me = self.config, self.index
        round = topology.next_round(me, after)
        k, nonce = self.draw_scalar(), self.draw(24)
        t = c.numbers(len(holders)).t
        coefficients = [k] + [self.draw_scalar() for _ in range(t - 1)]
        neighbours = [v for v in topology.neighbours(me, round) if v in holders]
        ahead = {v: pairs[v].ahead(round) for v in neighbours}
        key = hkdf(write_scalar(k), b"blob key", 32)
        place = H(b"blob place", session, u64(round), u32(me))
        blob = seal(key, nonce, b"".join(ahead[v].secret() for v in neighbours), place)
        binding = H(b"holders", make_set(holders, c.n))
        sealed = [self.seal_share(ahead[v], v, 1, share, nonce, session, binding)
                  for v, share in shares_of(coefficients, neighbours).items()]
        body = (u64(round) + self.commitment(1, session, round, k) + nonce + blob
                + b"".join(sealed))
        return round, holders, body

    def commitment(self, purpose, session, round, secret):
        """§6.4"""
        return H(b"commitment", u8(purpose), session, u64(round), u32(self.index),
                 write_scalar(secret))

    def seal_share(self, pair, to, purpose, share, nonce, session, binding):
        """§6.3, by the chain at the round's place."""
        data = share_data(session, pair.round, purpose, self.index, to, binding)
        return seal(pair.channels()[purpose, True], nonce, write_scalar(share), data)

    def open_share(self, key, owner, purpose, sealed, binding):
        """The share in a SealedShare of §5.3, or None."""
        data = share_data(self.session, self.last, purpose, owner, self.index, binding)
        share = unseal(key, sealed[:24], sealed[24:], data)
        return share if share is not None and read_scalar(share) is not None else None

    # A round: §10.

    def begin(self, m):  # §10, §11.1
        c, me, round, n = self.config, self.index, m.round, self.config.n
        need(not (round == self.last and round >= 1), "ErrReplay")
        need(round > self.last, "ErrStale")
        need(round - self.last - 1 <= c.max_skip, "ErrSkip")
        holders = frozenset(self.topology.members)
        if c.recovery is not None:
            need(self.material[0] == round, "ErrParticipants")
            holders = self.material[1]
        need(len(m.body) >= 32 + set_size(n), "ErrTruncated")
        digest = m.body[:32]
        participants, rest = read_set(m.body[32:], n)
        all_neighbours = self.topology.neighbours(me, round)
        near = [v for v in all_neighbours if v in participants and v in holders]
        need_length(rest, 72 * len(near) if c.recovery is not None else 0)
        need(me in participants, "ErrParticipants", me)
        due = self.topology.scheduled(round) & holders
        need(participants <= due, "ErrParticipants")
        if c.recovery is None:
            missing = sorted(due - participants)
            need(not missing, "ErrParticipants", missing[0] if missing else None)
        numbers = c.numbers(len(holders))
        need(len(participants) >= numbers.m, "ErrTooFew")
        need(len(near) >= numbers.t, "ErrTooFew")
        for pair in self.pairs.values():
            pair.move(round)
        self.state, self.last = "B", round
        r = self.open = SimpleNamespace()
        r.digest, r.participants, r.holders, r.near = digest, participants, holders, near
        r.neighbours, r.numbers = all_neighbours, numbers
        r.context = H(b"context", self.session, u64(round), digest, make_set(holders, n),
                      make_set(participants, n))
        r.channels = {v: self.pairs[v].channels() for v in near}
        binding = H(b"holders", make_set(holders, n))
        r.keys = {v: self.open_share(r.channels[v][1, False], v, 1, sealed, binding)
                  for v, sealed in zip(near, cut(rest, 72))}

    def submit(self, broadcast, values):
        """Masks the party's input: submit of §11.1, and §8.4."""
        return self.submit_digest(H(b"broadcast", broadcast), values)

    def submit_digest(self, digest, values):  # §8.4, §11.1
        c, me, r, round = self.config, self.index, self.open, self.last
        need(self.state == "B", "ErrPhase")
        need(digest == r.digest, "ErrBroadcast")
        need(len(values) == len(c.layout), "ErrLength")
        for v, (length, bits) in zip(values, c.layout):
            need(len(v) == length, "ErrLength")
            need(all(0 <= x < 1 << bits for x in v), "ErrRange")
        total, tail, material = [list(v) for v in values], b"", None

        def add(seed, sign):
            for sums, masks, (_, bits) in zip(total, mask(seed, c.layout), c.layout):
                sums[:] = ((s + sign * x) % (1 << bits) for s, x in zip(sums, masks))

        if c.recovery is not None:
            self.topology.next_round(me, round)
            b, nonce = self.draw_scalar(), self.draw(24)
            coefficients = [b] + [self.draw_scalar() for _ in range(r.numbers.t - 1)]
            material = self.make_material(round, r.holders, self.topology, self.session, self.pairs)
            shares = shares_of(coefficients, r.near)
            tail = self.commitment(0, self.session, round, b) + nonce
            tail += b"".join(self.seal_share(self.pairs[v], v, 0, shares[v], nonce, self.session,
                                             r.context) for v in r.near)
            tail += material[2]
            add(hkdf(write_scalar(b), b"self mask", 28), 1)
        for v in r.near:
            seed = expand(self.pairs[v].secret(), LABEL + b"mask" + r.context, 28)
            add(seed, 1 if v > me else -1)
        for v in r.neighbours:
            self.pairs[v].move(round + 1)
        self.state = "M" if c.recovery is not None else "I"
        self.material = material
        return self.sent(header(MASKED, self.session, round, me) + pack(total, c.layout) + tail)

    def invite(self, m):  # §10.2, §11.1
        c, me, round = self.config, self.index, m.round
        need_length(m.body, set_size(c.n))
        holders, _ = read_set(m.body, c.n)
        need(round >= self.last, "ErrStale")
        need(round - self.last <= c.max_skip, "ErrSkip")
        members = frozenset(self.topology.members)
        need(me in holders, "ErrParticipants", me)
        need(holders <= members, "ErrParticipants")
        need(holders == members or not c.sparse and not c.draws, "ErrParticipants")
        need(len(holders) >= c.min_members, "ErrTooFew")
        material = self.material
        if material is not None and material[0] > round:
            need(material[1] == holders, "ErrReplay")
        else:
            material = self.make_material(round, holders, self.topology, self.session, self.pairs)
        self.state, self.last, self.material, self.open = "I", round, material, None
        for pair in self.pairs.values():
            pair.move(round + 1)
        return header(UPLOAD, self.session, round, me) + material[2]

    def survivors(self, m):  # §10.2, §11.1
        c, me, round, r = self.config, self.index, m.round, self.open
        need(round >= self.last, "ErrStale")
        need(round == self.last and self.state not in "IB", "ErrPhase")
        need(self.state != "G", "ErrReplay")
        survivors, rest = read_set(m.body, c.n)
        near = [v for v in r.near if v in survivors]
        need_length(rest, 72 * len(near))
        need(me in survivors, "ErrSurvivors", me)
        need(survivors <= r.participants, "ErrSurvivors")
        need(len(survivors) >= r.numbers.m, "ErrTooFew")
        r.survivors, r.sealed = survivors, dict(zip(near, cut(rest, 72)))
        r.statement = r.context + make_set(survivors, c.n)
        self.state = "G"
        return (header(SIGNED, self.session, round, me)
                + sign(self.identity, b"survivors", r.statement))

    def certificate(self, m):  # §10.2, §11.1
        c, me, round, r = self.config, self.index, m.round, self.open
        need(round >= self.last, "ErrStale")
        need(round == self.last and self.state == "G", "ErrPhase")
        need(len(m.body) % 68 == 0, "ErrTruncated")
        entries = [(int.from_bytes(e[:4], "big"), e[4:]) for e in cut(m.body, 68)]
        need(len(entries) <= c.n, "ErrOversized")
        before = -1
        for party, _ in entries:
            need(before < party < c.n, "ErrEncoding")
            before = party
        need(len(entries) >= r.numbers.q, "ErrCertificate")
        for party, signature in entries:
            known = party in r.survivors and (not c.sparse or party in r.near)
            need(known, "ErrCertificate", party)
            need(verify(c.roster[party][1], b"survivors", r.statement, signature), "ErrSignature",
                 party)
        shares = {v: self.open_share(r.channels[v][0, False], v, 0, r.sealed[v], r.context)
                  if v in r.survivors else r.keys[v] for v in r.near}
        self.state, self.open = "I", None
        return header(REVEAL, self.session, round, me) + b"".join(
            u32(v) + share for v, share in shares.items() if share is not None)


class Series:
    """The sessions of a party under one label: §10.5."""

    def __init__(self, label, identity_seed, random, least=0):
        self.label, self.identity, self.random, self.least = label, identity_seed, random, least
        self.present = self.successor = None

    def succeed(self, config):  # §10.5
        need(config.label == self.label, "ErrConfig")
        need(self.least <= config.number < 2**62, "ErrNumber")
        need(config.number - self.least <= 2**40, "ErrNumber")
        self.successor = Client(config, self.identity, self.random)
        self.least = config.number + 1
        return self.successor.announce

    def named(self, data):
        """The client that a message is for."""
        m = read_message(data)
        for client in self.present, self.successor:
            if client is not None and m.session in (client.config.digest, client.session):
                return client, m
        raise Refused("ErrSession")

    def receive(self, data):
        client, m = self.named(data)
        answer = client.receive(data)
        if client is self.successor and m.type in (BEGIN, INVITE):
            self.present, self.successor = client, None
        return answer

    def submit(self, broadcast, values):
        need(self.present is not None, "ErrPhase")
        return self.present.submit(broadcast, values)
